"""The parts of a long benchmark, each kept in a file as soon as it is done: a run that is broken off goes on there."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tidegate.model.errors import UserError


class Parts:
    """Without a directory nothing is kept, and every part is done anew."""

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory
        if directory is not None:
            directory.mkdir(parents=True, exist_ok=True)

    def done(self, name: str, do: Callable[[], list[dict[str, Any]]]) -> list[dict[str, Any]]:
        """The rows of a part: those that an earlier run kept, or those that doing it gives."""
        path = None if self._directory is None else self._directory / f"{name}.json"
        if path is not None and path.exists():
            return self._kept(path)
        rows = do()
        if path is not None:
            # Whole or not at all: a run may be broken off at any moment.
            unfinished = path.with_suffix(".unfinished")
            unfinished.write_text(json.dumps(rows))
            os.replace(unfinished, path)  # noqa: PTH105 - replaces what another run may have left
        return rows

    @staticmethod
    def _kept(path: Path) -> list[dict[str, Any]]:
        try:
            rows: list[dict[str, Any]] = json.loads(path.read_text())
        except ValueError:
            raise UserError(
                f"{path} is no part that this benchmark kept: remove it, or name another directory with --out."
            ) from None
        return rows
