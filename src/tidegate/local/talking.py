"""A process that is told lines of text and answers with lines of JSON."""

import json
import subprocess
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tidegate.local.process import STOP_S_MAX, LocalProcess
from tidegate.model.errors import TidegateError

ANSWER_S_MAX = 120.0


class TalkingProcess(LocalProcess):
    """Its standard output is read by a thread as it comes: a pipe that nobody empties would stop it.

    What it writes to standard error goes to its log, or to this process's standard error.
    """

    def __init__(
        self, name: str, command: Sequence[str], *, log: Path | None, environment: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(name, command, log=log, environment=environment)
        self._answers: deque[dict[str, Any]] = deque()
        self._changed = threading.Condition()
        self._is_silent = False
        self._reader = threading.Thread(target=self._read, name=f"reader of {name}", daemon=True)

    def start(self) -> None:
        super().start()
        self._reader.start()

    def _open(self, log: int | None) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self._command,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            process_group=0,
        )

    def tell(self, line: str) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())
        self._process.stdin.flush()

    def last_answer(self, timeout_s: float = ANSWER_S_MAX) -> dict[str, Any]:
        """The last line that it says, once it has ended."""
        with self._changed:
            if self._changed.wait_for(lambda: self._is_silent, timeout_s) and self._answers:
                return self._answers[-1]
        raise self._no_answer(timeout_s)

    def _no_answer(self, timeout_s: float) -> TidegateError:
        what = "ended without an answer" if self._is_silent else f"did not answer within {timeout_s:.0f} s"
        where = "its messages above say why" if self._log is None else f"see {self._log}"
        return TidegateError(f"The process {self.name} {what}: {where}.")

    def stop(self, seconds_max: float = STOP_S_MAX) -> None:
        super().stop(seconds_max)
        self._close()

    def _close(self) -> None:
        if self._process is None:
            return
        self._reader.join(STOP_S_MAX)  # a child of its own may hold the pipe open after it has ended
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                # What was written to a process that had ended meanwhile cannot be delivered any more.
                with suppress(BrokenPipeError):
                    pipe.close()

    def _read(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        try:
            for line in self._process.stdout:
                with self._changed, suppress(ValueError):  # a line that is no answer is passed over
                    self._answers.append(json.loads(line))
                    self._changed.notify()
        finally:
            with self._changed:
                self._is_silent = True
                self._changed.notify()
