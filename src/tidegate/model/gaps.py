"""A place where the brokers' log is not what the tables have read: set back, replaced, or deleted from."""

from datetime import UTC, datetime
from typing import Literal

import msgspec

GAPS_MAX = 256

Kind = Literal["shorter", "different", "deleted"]


class Gap(msgspec.Struct, frozen=True, kw_only=True):
    """One slice, one break. Reading went on at once; the gap stays open until a person has looked at it.

    ``shorter`` and ``different``: the log came back without, or with another, message at the position that the tables
    have. ``deleted``: messages that the tables do not have are gone from the log's beginning.
    """

    slice: int
    kind: Kind
    noticed_at_s: float
    node: str  # who noticed
    incarnation: int  # the one that is read from now on
    expected_sequence: int  # what the tables have, in the incarnation before
    expected_stamp_s: float | None = None  # when that message was stored
    found_first: int = 0  # what the log has
    found_last: int = 0
    found_stamp_s: float | None = None  # of the message at the expected sequence, where there is one

    @property
    def sentence(self) -> str:
        """What was expected, what was found, and what that means."""
        if self.kind == "deleted":
            return (
                f"Slice {self.slice}: the tables have it up to {self.expected_sequence}, but the log begins at "
                f"{self.found_first}: {self.found_first - self.expected_sequence - 1} messages between were deleted "
                "from it unread."
            )
        stored = "" if self.expected_stamp_s is None else f", stored {_utc(self.expected_stamp_s)}"
        found = f"the log ends at {self.found_last}"
        if self.kind == "different":
            when = f" (stored {_utc(self.found_stamp_s)})" if self.found_stamp_s else ""
            found = f"the log has another message there{when} and ends at {self.found_last}"
        return (
            f"Slice {self.slice}: the log was set back or replaced: the tables have it up to {self.expected_sequence}"
            f"{stored}, but {found}. It is read anew from {self.found_first}; what was acknowledged in between and is "
            "in neither is lost."
        )


class Gaps(msgspec.Struct, frozen=True):
    """All open gaps, oldest first."""

    open: tuple[Gap, ...] = ()

    def with_(self, gap: Gap) -> "Gaps":
        """The same break is noted once, however often it is met on the way to its commit."""
        same = (gap.slice, gap.incarnation, gap.kind)
        others = [one for one in self.open if (one.slice, one.incarnation, one.kind) != same]
        return Gaps((*others, gap)[-GAPS_MAX:])

    def without(self, slices: frozenset[int]) -> "Gaps":
        return Gaps(tuple(one for one in self.open if one.slice not in slices))


def _utc(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
