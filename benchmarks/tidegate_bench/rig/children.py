"""A load or an attacker as a process of the benchmark's own, so that its work is told apart from what is measured."""

import sys
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tidegate.local.talking import ANSWER_S_MAX, TalkingProcess


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

    def answer(self, timeout_s: float = ANSWER_S_MAX) -> dict[str, Any]:
        """The next line that it says."""
        with self._changed:
            self._changed.wait_for(lambda: self._answers or self._is_silent, timeout_s)
            if self._answers:
                return self._answers.popleft()
        raise self._no_answer(timeout_s)

    @property
    def has_answered(self) -> bool:
        """Whether ``answer`` would not have to wait; so it is where the child has ended."""
        with self._changed:
            return bool(self._answers) or self._is_silent

    def kill(self) -> None:
        super().kill()
        self._close()
