"""What a command found out: rows, checks with their bars, and how they are printed.

The JSON form is part of the command contract: ``{"name", "rows", "checks": [{"name", "value", "bar",
"holds"}], "seconds"}``, one object on standard output. A bar names its own direction, as in ``"<= 5"``.
"""

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Any, TextIO

import msgspec
from rich.console import Console
from rich.table import Table

PROGRESS_EVERY_S = 2.0
EXIT_HOLDS, EXIT_FAILS = 0, 1
_WIDTH_UNLESS_TERMINAL = 120

Scalar = float | int | str | bool | None


class Check(msgspec.Struct, frozen=True):
    """One claim: the value found, the bar it is held against, and whether it holds."""

    name: str
    value: Scalar
    bar: Scalar
    holds: bool

    @classmethod
    def at_most(cls, name: str, value: float, limit: float) -> "Check":
        return cls(name, value, f"<= {limit:g}", bool(value <= limit))

    @classmethod
    def at_least(cls, name: str, value: float, limit: float) -> "Check":
        return cls(name, value, f">= {limit:g}", bool(value >= limit))

    @classmethod
    def equal(cls, name: str, value: Scalar, expected: Scalar) -> "Check":
        shown = msgspec.json.encode(expected).decode() if isinstance(expected, bool) else expected
        return cls(name, value, f"== {shown}", bool(value == expected))


class Report(msgspec.Struct, frozen=True):
    """All that a command found out. ``rows`` hold everything from which the checks can be recomputed."""

    name: str
    rows: Sequence[dict[str, Any]]
    checks: Sequence[Check]
    seconds: float

    @property
    def holds(self) -> bool:
        return all(check.holds for check in self.checks)

    @property
    def exit_status(self) -> int:
        return EXIT_HOLDS if self.holds else EXIT_FAILS


def print_report(report: Report, *, as_json: bool, stream: TextIO | None = None) -> None:
    stream = stream or sys.stdout
    if as_json:
        stream.write(msgspec.json.encode(report, enc_hook=_plain).decode() + "\n")
        stream.flush()
        return
    console = _console(stream)
    failed = [check.name for check in report.checks if not check.holds]
    verdict = f"{len(failed)} of {len(report.checks)} checks fail: {', '.join(failed)}" if failed else "all checks hold"
    console.print(f"{report.name}: {verdict}, {report.seconds:.3g} s.", markup=False, highlight=False)
    if report.rows:
        console.print(rows_table(report.rows))
    if report.checks:
        console.print(_checks_table(report.checks))


def rows_table(rows: Sequence[dict[str, Any]]) -> Table:
    """Rows with the same keys, or nearly: a column per key, in order of first appearance."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    table = Table(show_edge=False, pad_edge=False)
    for name in names:
        numeric = all(isinstance(row.get(name, 0), int | float) for row in rows)
        table.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(_escape(show(row[name])) if name in row else "" for name in names))
    return table


def show(value: Any) -> str:
    """A value for people: thousands separated, three significant digits for fractions."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return value if isinstance(value, str) else msgspec.json.encode(value, enc_hook=_plain).decode()


@contextlib.contextmanager
def everything_else_to_stderr() -> Iterator[None]:
    """What is printed meanwhile, also by child processes, goes to stderr: stdout is for the result."""
    sys.stdout.flush()
    try:
        output, error = sys.__stdout__.fileno(), sys.__stderr__.fileno()  # type: ignore[union-attr]
    except (OSError, AttributeError):
        with contextlib.redirect_stdout(sys.stderr):
            yield
        return
    kept = os.dup(output)
    os.dup2(error, output)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, output)
        os.close(kept)


class Progress:
    """Tells on standard error what is going on: at least a line every two seconds, also while nobody calls
    it.

    On a terminal it is a single line that is written over.
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
        # Whoever reads the progress may have gone; the work goes on.
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(text)
            self._stream.flush()


def _checks_table(checks: Sequence[Check]) -> Table:
    table = Table(show_edge=False, pad_edge=False)
    for name in ("check", "value", "bar", "holds"):
        table.add_column(name, justify="right" if name == "value" else "left", overflow="fold")
    for check in checks:
        word = "[green]holds[/green]" if check.holds else "[bold red]fails[/bold red]"
        table.add_row(_escape(check.name), _escape(show(check.value)), _escape(show(check.bar)), word)
    return table


def _console(stream: TextIO) -> Console:
    # A file or a pipe has no width: without one rich would fold the table at 80 columns.
    return Console(file=stream, width=None if stream.isatty() else _WIDTH_UNLESS_TERMINAL)


def _escape(text: str) -> str:
    return text.replace("[", r"\[")


def _plain(value: Any) -> Any:
    """Numbers of numpy and pyarrow as Python's own."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if hasattr(value, "as_py"):
        return value.as_py()
    raise NotImplementedError(f"a {type(value).__name__} in a report")
