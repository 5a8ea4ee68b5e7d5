"""The book: what was acknowledged, less what the tables have. Pure; whoever calls it has read journal and tables.

Readings usually reach the tables before the report of their acknowledgement comes, so what was stored lately is kept
for a while. What is acknowledged and not (yet) accounted for is **open**. Both are bounded: what was stored may be
forgotten, because before anything is called missing the table itself is asked; an open reading that finds no room is
counted as unwatched.

A device that goes on while all it sends is lost has one range that waits for its verdict as it is, and one behind it
that grows: so the first is decided as soon as it can be, and there are few, however far the tables are behind.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal

import msgspec

from tidegate.model.ledger import Hole, HourSums, LedgerReport
from tidegate.pipeline.completeness.pages import HOUR_S, Open, Pages, Sums
from tidegate.pipeline.completeness.recent import Interval, Recent, Run, joined, readings, without

HOURS_KEPT = 48
OPEN_MAX = 500_000
OPEN_BYTES_MAX = 256 * 1024**2  # a name may be long
_OPEN_BYTES = 400  # what Python needs beside it
HOLES_KEPT = 10_000
# Looked up twice, with this time between, before it is called missing.
CONFIRM_S = 15.0
# What was called missing is looked for again: now and then, for an hour.
AGAIN_S, AGAIN_S_MAX = 300.0, 3600.0

Outcome = Literal["stored", "rejected"]
_Key = tuple[str, int]  # device and boot


class Book:
    def __init__(self, slice_of: Callable[[str], int], pages: Pages | None = None) -> None:
        pages = pages or Pages()
        self.withdrawn = pages.withdrawn
        self._slice_of = slice_of
        self._hours = dict(pages.hours)
        self._open: dict[_Key, list[Open]] = {}
        self._count = self._bytes = 0
        self._look = 0
        self._stored, self._rejected = Recent(), Recent()
        for one in pages.open:
            one.look = 0
            self._open.setdefault((one.device, one.boot), []).append(one)
            self._counted(one.device, 1)

    def pages(self) -> Pages:
        return Pages(self._hours, list(self._entries()), self.withdrawn)

    def _entries(self) -> Iterator[Open]:
        return (one for entries in self._open.values() for one in entries)

    def _sums(self, hour: int) -> Sums:
        sums = self._hours.get(hour)
        if sums is None:
            sums = self._hours[hour] = Sums()
            for old in sorted(self._hours)[:-HOURS_KEPT]:
                del self._hours[old]
        return sums

    def renumber(self, number: int) -> None:
        """Reports are numbered anew: all that is open was acknowledged before this one."""
        for one in self._entries():
            one.report = one.first = number

    # -- what was acknowledged

    def acknowledge(self, report: LedgerReport, number: int, taken_s: float) -> None:
        """One record of the journal, which the bus took at this time by its clock."""
        since_s, until_s = taken_s - report.oldest_s, taken_s - report.newest_s
        sums = self._sums(int(until_s // HOUR_S))
        sums.nameless += report.nameless
        sums.unwatched += report.unwatched
        for device, runs in report.devices:
            slice_ = self._slice_of(device)
            for boot, low, high in runs:
                unstored = self._stored.without(device, boot, [(low, high)])
                rest = self._rejected.without(device, boot, unstored)
                sums.acknowledged += high - low + 1
                sums.stored += high - low + 1 - readings(unstored)
                sums.rejected += readings(unstored) - readings(rest)
                for low_, high_ in rest:
                    new = Open(device, boot, low_, high_, slice_, report.gateway, since_s, until_s, number)
                    new.first = number
                    self._keep(new, sums)

    def _keep(self, new: Open, sums: Sums) -> None:
        entries = self._open.setdefault((new.device, new.boot), [])
        if _continues(entries, new):
            last = entries[-1]
            last.high, last.until_s, last.report = new.high, new.until_s, new.report
        elif self._count < OPEN_MAX and self._bytes < OPEN_BYTES_MAX:
            entries.append(new)
            self._counted(new.device, 1)
        else:
            sums.acknowledged -= new.readings
            sums.unwatched += new.readings
            if not entries:
                del self._open[new.device, new.boot]

    def _counted(self, device: str, more: int) -> None:
        self._count += more
        self._bytes += more * (_OPEN_BYTES + sys.getsizeof(device))

    def _replace(self, key: _Key, kept: list[Open]) -> None:
        self._counted(key[0], len(kept) - len(self._open[key]))
        if kept:
            self._open[key] = kept
        else:
            del self._open[key]

    # -- what became of it

    def account(self, runs: Iterable[Run], outcome: Outcome) -> None:
        """The tables have these: as readings, or as what was rejected."""
        recent = self._stored if outcome == "stored" else self._rejected
        found: dict[_Key, list[Interval]] = {}
        for run in runs:
            recent.add(run)
            key = (run.device, run.boot)
            if key in self._open:
                found.setdefault(key, []).append((run.low, run.high))
        for key, intervals in found.items():
            taken = joined(intervals)
            self._replace(key, [part for one in self._open[key] for part in self._cut(one, taken, outcome)])

    def _cut(self, one: Open, taken: list[Interval], outcome: Outcome) -> list[Open]:
        rest = without(one.low, one.high, taken)
        found, sums = one.readings - readings(rest), self._sums(one.hour)
        if not found:
            return [one]
        if outcome == "stored":
            sums.stored += found
        else:
            sums.rejected += found
        if one.named_s:
            sums.missing -= found
            self.withdrawn += found
        return [msgspec.structs.replace(one, low=low, high=high) for low, high in rest]

    # -- what is missing

    def due(self, settled: Mapping[int, int], now_s: float, count_max: int) -> list[Open]:
        """What the tables should have and is not accounted for: to be looked up now."""
        found: list[Open] = []
        self._look += 1
        for one in self._entries():
            if one.report <= settled.get(one.slice, 0) and _is_to_be_looked_up(one, now_s):
                found.append(one)
                one.look = self._look
                if len(found) >= count_max:
                    break
        return found

    def missed(self, looked_up: Iterable[Open], now_s: float) -> list[Open]:
        """The table was asked for what was ``due``, and what it has was accounted for. Those that are missing from now
        on.

        What is missing after the first look is only remembered as looked for.
        """
        named: list[Open] = []
        for key in dict.fromkeys((asked.device, asked.boot) for asked in looked_up):
            for one in self._open.get(key, ()):
                if one.look != self._look:
                    continue
                if one.looked_s and not one.named_s:
                    one.named_s = now_s
                    self._sums(one.hour).missing += one.readings
                    named.append(one)
                one.looked_s = now_s
        return named

    def forget(self, bus_now_s: float, age_s_max: float) -> None:
        """Let go of what is too old to be checked, and of holes that are told long enough."""
        for key, entries in list(self._open.items()):
            if len(entries) > 1:
                self._replace(key, _with_whole_holes(entries))
        holes = sorted((one for one in self._entries() if one.named_s), key=lambda one: -one.named_s)
        told = {id(one) for one in holes[:HOLES_KEPT] if bus_now_s - one.until_s < HOURS_KEPT * HOUR_S}
        for key, entries in list(self._open.items()):
            kept = []
            for one in entries:
                if one.named_s:
                    if id(one) in told:
                        kept.append(one)
                elif bus_now_s - one.until_s < age_s_max:
                    kept.append(one)
                else:
                    sums = self._sums(one.hour)
                    sums.acknowledged -= one.readings
                    sums.unwatched += one.readings
            self._replace(key, kept)

    # -- what is said of it

    def hours(self) -> tuple[HourSums, ...]:
        return tuple(
            HourSums(
                hour_s=hour * HOUR_S,
                acknowledged=sums.acknowledged,
                stored=sums.stored,
                rejected=sums.rejected,
                missing=sums.missing,
                nameless=sums.nameless,
                unwatched=sums.unwatched,
            )
            for hour, sums in sorted(self._hours.items())
        )

    def holes(self) -> list[Hole]:
        """Oldest first."""
        named = sorted((one for one in self._entries() if one.named_s), key=lambda one: (one.named_s, one.device))
        return [
            Hole(
                device=one.device,
                boot=one.boot,
                low=one.low,
                high=one.high,
                slice=one.slice,
                gateway=one.gateway,
                since_s=one.since_s,
                until_s=one.until_s,
                named_s=one.named_s,
                seen=one.seen,
            )
            for one in named
        ]

    def settled(self, report: int) -> int:
        """The last report, of those up to this one, that has nothing open and nothing open before it."""
        return min(((one.first or one.report) - 1 for one in self._entries() if not one.named_s), default=report)

    def oldest_s(self) -> float | None:
        """When the oldest reading was acknowledged of which it is not known yet."""
        return min((one.since_s for one in self._entries() if not one.named_s), default=None)


def _continues(entries: list[Open], new: Open) -> bool:
    """Whether the last may grow. It does so behind another that waits for its verdict: one that is the first to wait,
    or was looked for, keeps its report, because each that follows would put its verdict off."""
    if not entries or entries[-1].looked_s or not _are_neighbours(entries[-1], new):
        return False
    return entries[-1].report == new.report or (len(entries) > 1 and not entries[-2].looked_s)


def _are_neighbours(one: Open, behind: Open) -> bool:
    return one.gateway == behind.gateway and one.hour == behind.hour and behind.low == one.high + 1


def _with_whole_holes(entries: list[Open]) -> list[Open]:
    """Holes that were named one after the other, because the device went on, become one."""
    kept = entries[:1]
    for one in entries[1:]:
        last = kept[-1]
        both_told = last.named_s and one.named_s and last.seen.partition(",")[0] == one.seen.partition(",")[0]
        if both_told and _are_neighbours(last, one):
            last.high, last.until_s, last.report = one.high, one.until_s, one.report
            last.named_s, last.looked_s, last.seen = one.named_s, min(last.looked_s, one.looked_s), one.seen
        else:
            kept.append(one)
    return kept


def _is_to_be_looked_up(one: Open, now_s: float) -> bool:
    if one.named_s:
        return now_s - one.named_s < AGAIN_S_MAX and abs(now_s - one.looked_s) >= AGAIN_S
    return not one.looked_s or abs(now_s - one.looked_s) >= CONFIRM_S
