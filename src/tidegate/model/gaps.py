"""A place where the brokers' log is not what the tables have read: set back, replaced, or deleted from."""

from typing import Literal

import msgspec

from tidegate.model.times import date_and_time

GAPS_MAX = 256

Kind = Literal["shorter", "different", "deleted", "missing"]


class Gap(msgspec.Struct, frozen=True, kw_only=True):
    """One slice, one break. Reading went on at once; the gap stays open until a person has looked at it.

    ``shorter`` and ``different``: the log came back without, or with another, message at the position that the tables
    have. ``deleted``: messages that the tables do not have are gone from the log's beginning. ``missing``: some are
    gone from its middle, deleted or unreadable; all such of one slice are one gap, from the first to the last of them.
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
    missing: int = 0  # messages between the expected sequence and the first that was found, where only some are gone

    @property
    def sentence(self) -> str:
        """What was expected, what was found, and what that means."""
        if self.kind == "deleted":
            return (
                f"Slice {self.slice}: the tables have it up to {self.expected_sequence}, but the log begins at "
                f"{self.found_first}: {self.found_first - self.expected_sequence - 1} messages between were deleted "
                "from it unread."
            )
        if self.kind == "missing":
            return (
                f"Slice {self.slice}: between {self.expected_sequence} and {self.found_first} the log lacks "
                f"{self.missing} message(s) that the tables do not have: they were deleted, or the broker's store is "
                "damaged there. Reading has gone on behind them."
            )
        stored = "" if self.expected_stamp_s is None else f", stored {date_and_time(self.expected_stamp_s)}"
        found = f"the log ends at {self.found_last}"
        if self.kind == "different":
            when = f" (stored {date_and_time(self.found_stamp_s)})" if self.found_stamp_s else ""
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
        before = next((one for one in self.open if one not in others), None)
        if gap.kind == "missing" and before is not None:
            gap = _joined(before, gap)
        return Gaps((*others, gap)[-GAPS_MAX:])

    def without(self, slices: frozenset[int]) -> "Gaps":
        return Gaps(tuple(one for one in self.open if one.slice not in slices))


def _joined(before: Gap, gap: Gap) -> Gap:
    """Two holes of one log as one gap: thousands of them must not drive out the gaps of others."""
    if gap.found_first <= before.found_first:
        return before  # the same one, met again
    return msgspec.structs.replace(
        gap,
        noticed_at_s=before.noticed_at_s,
        expected_sequence=before.expected_sequence,
        expected_stamp_s=before.expected_stamp_s,
        missing=before.missing + gap.missing,
    )
