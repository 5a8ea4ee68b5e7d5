"""What a command found out: rows, and checks with their bars.

The JSON form is part of the command contract: ``{"name", "rows", "checks": [{"name", "value", "bar",
"holds"}], "seconds"}``, one object on standard output. A bar names its own direction, as in ``"<= 5"``.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

EXIT_HOLDS, EXIT_FAILS = 0, 1

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
    def below(cls, name: str, value: float, limit: float) -> "Check":
        return cls(name, value, f"< {limit:g}", bool(value < limit))

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
