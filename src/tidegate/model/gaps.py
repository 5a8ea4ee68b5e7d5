"""A place where the brokers' log is not what the tables have read: set back, replaced, or deleted from."""

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
