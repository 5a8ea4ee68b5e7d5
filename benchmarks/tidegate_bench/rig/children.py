"""A load or an attacker as a process of the benchmark's own, so that its work is told apart from what is measured."""

import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from tidegate.local.talking import TalkingProcess


class Child(TalkingProcess):
    """``python -m tidegate_bench.<module>``, started at once. It is killed when the block is left."""

    def __init__(self, module: str, *arguments: str, log: Path | None = None, **options: object) -> None:
        command = [sys.executable, "-m", f"tidegate_bench.{module}", *arguments]
        command += [text for name, value in options.items() for text in (f"--{name.replace('_', '-')}", str(value))]
        super().__init__(module, command, log=log)
        self.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
