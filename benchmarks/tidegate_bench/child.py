"""The parent's side of a load: a process of the benchmark's own, told by lines, that answers with lines of JSON."""

import json
import subprocess
import sys
import threading
from collections import deque
from typing import Any

from tidegate.model.errors import TidegateError

ANSWER_S_MAX = 120.0


class Child:
    """``python -m tidegate_bench.<module>``. It ends with the block, or when this process does."""

    def __init__(self, module: str, *arguments: str, **options: object) -> None:
        command = [sys.executable, "-m", f"tidegate_bench.{module}", *arguments]
        command += [text for name, value in options.items() for text in (f"--{name.replace('_', '-')}", str(value))]
        self._name = module
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, start_new_session=True
        )
        self._lines: deque[dict[str, Any]] = deque()
        self._changed = threading.Condition()
        self._ended = False
        self._reader = threading.Thread(target=self._read, name=f"bench-{module}", daemon=True)
        self._reader.start()

    def __enter__(self) -> "Child":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    def tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def answer(self, timeout_s: float = ANSWER_S_MAX) -> dict[str, Any]:
        """The next line that it says."""
        with self._changed:
            self._changed.wait_for(lambda: self._lines or self._ended, timeout_s)
            if self._lines:
                return self._lines.popleft()
        what = "ended without a word" if self._ended else f"said nothing for {timeout_s:.0f} s"
        raise TidegateError(f"The benchmark's process {self._name} {what}: what it wrote above says why.")

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._changed:
                self._lines.append(json.loads(line))
                self._changed.notify()
        with self._changed:
            self._ended = True
            self._changed.notify()
