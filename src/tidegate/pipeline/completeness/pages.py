"""What the book is written in: open readings and an hour's sums, as they are kept over a restart."""

import msgspec

HOUR_S = 3600.0


class Open(msgspec.Struct, array_like=True, gc=False):
    """Readings that were acknowledged and are not accounted for. ``named_s``: when they were called missing, or 0."""

    device: str
    boot: int
    low: int
    high: int
    slice: int
    gateway: str
    since_s: float
    until_s: float
    report: int
    looked_s: float = 0.0  # when the table was asked for them last, or 0
    named_s: float = 0.0
    seen: str = ""
    first: int = 0  # the first of the reports it is from; ``report`` is the last
    look: int = 0  # in which look-up it was asked for

    @property
    def readings(self) -> int:
        return self.high - self.low + 1

    @property
    def hour(self) -> int:
        return int(self.until_s // HOUR_S)


class Sums(msgspec.Struct, array_like=True, gc=False):
    acknowledged: int = 0
    stored: int = 0
    rejected: int = 0
    missing: int = 0
    nameless: int = 0
    unwatched: int = 0


class Pages(msgspec.Struct):
    """All of a book that outlives its process."""

    hours: dict[int, Sums] = {}
    open: list[Open] = []
    withdrawn: int = 0
