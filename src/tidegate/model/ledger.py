"""What gateways acknowledged, and whether the tables have it: the book that a running installation keeps on itself."""

import msgspec

# Boot, first and last sequence number, both included.
SequenceRun = tuple[int, int, int]


class LedgerCounts(msgspec.Struct, frozen=True, kw_only=True):
    """What a gateway did to keep the book. Counters.

    What was noted and is not reported is on its way; of processes that are gone it is lost, and counts as unwatched.
    """

    noted: int = 0  # acknowledged readings whose identity was noted
    reported: int = 0  # of those, how many are in the journal
    nameless: int = 0  # acknowledged without an identity: stored at least once, and not in the book
    unwatched: int = 0  # acknowledged readings that nobody will check


class LedgerReport(msgspec.Struct, frozen=True, kw_only=True):
    """What one process of a gateway acknowledged over some seconds.

    Times are said as ages at the moment of sending, and the bus stamps what it takes: so no two clocks must agree. The
    counts are those of the same time; a report in several parts has them in its first.
    """

    gateway: str
    process: int
    oldest_s: float  # how long ago the first of these was acknowledged, at most
    newest_s: float
    nameless: int = 0
    unwatched: int = 0
    devices: tuple[tuple[str, tuple[SequenceRun, ...]], ...] = ()
