"""What gateways acknowledged, and whether the tables have it: the book that a running installation keeps on itself."""

from typing import Annotated

import msgspec

from tidegate.model.readings import Natural
from tidegate.model.times import clock_time

# Boot, first and last sequence number, both included.
SequenceRun = tuple[Natural, Natural, Natural]
# What a report may say at most, so that one that is damaged and still JSON is not taken for one.
REPORT_READINGS_MAX = 10**9
Age = Annotated[float, msgspec.Meta(ge=0, le=366 * 86_400.0)]
Number = Annotated[int, msgspec.Meta(ge=0, le=10**12)]
_NAME_SAID_MAX = 120


class LedgerCounts(msgspec.Struct, frozen=True, kw_only=True):
    """What a gateway did to keep the book. Counters.

    What was noted and is not reported is on its way; of processes that are gone it is lost, and counts as unwatched.
    """

    noted: int = 0  # acknowledged readings whose identity was noted
    reported: int = 0  # of those, how many are in the journal
    nameless: int = 0  # acknowledged without an identity: stored at least once, and not in the book
    unwatched: int = 0  # acknowledged readings that nobody will check
    unreported_s: int = 0  # for how long a process has something noted that is not reported; no counter


class LedgerReport(msgspec.Struct, frozen=True, kw_only=True):
    """What one process of a gateway acknowledged over some seconds.

    Times are said as ages at the moment of sending, and the bus stamps what it takes: so no two clocks must agree. The
    counts are those of the same time; a report in several parts has them in its first.
    """

    gateway: str
    process: int
    oldest_s: Age  # how long ago the first of these was acknowledged, at most
    newest_s: Age
    nameless: Number = 0
    unwatched: Number = 0
    devices: tuple[tuple[str, tuple[SequenceRun, ...]], ...] = ()

    def __post_init__(self) -> None:
        counts = [high - low + 1 for _, runs in self.devices for _, low, high in runs]
        if counts and (min(counts) < 1 or sum(counts) > REPORT_READINGS_MAX):
            raise ValueError("a run ends before it begins, or there are too many readings")


class HourSums(msgspec.Struct, frozen=True, kw_only=True):
    """One hour of acknowledgements, by the bus's clock: how many, and what became of them."""

    hour_s: float  # when it began (Unix time)
    acknowledged: int = 0  # with an identity
    stored: int = 0
    rejected: int = 0
    missing: int = 0
    nameless: int = 0
    unwatched: int = 0  # acknowledged, and nobody can say what became of them

    @property
    def waiting(self) -> int:
        """Those of which it is not known yet."""
        return self.acknowledged - self.stored - self.rejected - self.missing


class Hole(msgspec.Struct, frozen=True, kw_only=True):
    """Readings of one device that a gateway acknowledged and that no table has."""

    device: str
    boot: int
    low: int
    high: int
    slice: int
    gateway: str
    since_s: float  # between these two moments it was acknowledged, by the bus's clock
    until_s: float
    named_s: float
    seen: str = ""  # what the brokers' log says of it

    @property
    def readings(self) -> int:
        return self.high - self.low + 1

    @property
    def sentence(self) -> str:
        numbers = f"seq {self.low}" if self.low == self.high else f"seq {self.low} to {self.high}"
        return (
            f"device {said_name(self.device)}, boot {self.boot}, {numbers}, acknowledged by {self.gateway} between "
            f"{clock_time(self.since_s)} and {clock_time(self.until_s)}, {self.seen}"
        )


def said_name(name: str) -> str:
    """A device's name in a sentence: devices choose it, so it may be long, and hold what a terminal would obey."""
    said = "".join(one if one.isprintable() else ascii(one)[1:-1] for one in name[:_NAME_SAID_MAX])
    return said if len(name) <= _NAME_SAID_MAX else f"{said}… ({len(name):,} characters)"


class CompletenessState(msgspec.Struct, frozen=True, kw_only=True):
    """What the check has found. ``hours`` are oldest first, ``holes`` too: the newest; there are ``holes_more``."""

    checker: str
    at_s: float
    hours: tuple[HourSums, ...] = ()
    holes: tuple[Hole, ...] = ()
    holes_more: int = 0
    reports: int = 0  # how far the journal has been read
    reports_behind: int = 0  # and how much of it has not
    settled: int = 0  # of all reports up to this one it is known what became of their readings
    reports_lost: int = 0  # gone, or damaged, before they were read
    withdrawn: int = 0  # readings that were called missing and came after all
    oldest_s: float | None = None  # when the oldest reading was acknowledged of which it is not known yet
    waits_for: str | None = None  # why nothing can be said at the moment
    left: bool = False  # the check was stopped by a person
    alarms: tuple[str, ...] = ()
