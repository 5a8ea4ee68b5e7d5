"""The progress line of a command that takes a while."""

import contextlib
import sys
import threading
import time
from types import TracebackType
from typing import TextIO

PROGRESS_EVERY_S = 2.0


class Progress:
    """Says on standard error what is going on: at least a line every two seconds, even while nothing calls it.

    On a terminal it is a single line that is overwritten.
    """

    def __init__(self, name: str, stream: TextIO | None = None, every_s: float = PROGRESS_EVERY_S) -> None:
        self._name, self._stream, self._every_s = name, stream or sys.stderr, every_s
        self._is_terminal = self._stream.isatty()
        self._text = "starting"
        self._started_s = self._printed_s = time.monotonic()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._heart = threading.Thread(target=self._beat, name="progress", daemon=True)

    def __enter__(self) -> "Progress":
        self._heart.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._heart.join()
        if self._is_terminal:
            self._write("\r\x1b[K")

    def step(self, text: str) -> None:
        """A new stage: said at once."""
        self._say(text, at_once=True)

    def update(self, text: str) -> None:
        """The same stage has come further: said when a line is due."""
        self._say(text, at_once=False)

    def _say(self, text: str, *, at_once: bool) -> None:
        with self._lock:
            self._text = text
            now = time.monotonic()
            if at_once or now - self._printed_s >= (0.1 if self._is_terminal else self._every_s):
                self._print(now)

    def _beat(self) -> None:
        while not self._ended.wait(self._every_s / 4):
            with self._lock:
                now = time.monotonic()
                if now - self._printed_s >= self._every_s * 3 / 4:
                    self._print(now)

    def _print(self, now: float) -> None:
        self._printed_s = now
        line = f"{self._name}: {self._text} ({now - self._started_s:.0f} s)"
        self._write(f"\r\x1b[K{line[:110]}" if self._is_terminal else f"{line}\n")

    def _write(self, text: str) -> None:
        # The reader of the progress may have gone; the work goes on.
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(text)
            self._stream.flush()
