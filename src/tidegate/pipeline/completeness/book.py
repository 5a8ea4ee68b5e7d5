"""The book: what was acknowledged, less what the tables have. Pure; whoever calls it has read journal and tables.

Readings usually reach the tables before the report of their acknowledgement comes, so what was stored lately is kept
for a while. What is acknowledged and not (yet) accounted for is **open**. Both are bounded: what was stored may be
forgotten, because before anything is called missing the table itself is asked; an open reading that finds no room is
counted as unwatched.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal

import msgspec

from tidegate.model.ledger import Hole, HourSums, LedgerReport
from tidegate.pipeline.completeness.pages import HOUR_S, Open, Pages, Sums
from tidegate.pipeline.completeness.recent import Recent, Run, readings

HOURS_KEPT = 48
OPEN_MAX = 500_000
HOLES_KEPT = 10_000
# Looked up twice, with this time between, before it is called missing.
CONFIRM_S = 15.0
# What was called missing is looked for again: now and then, for an hour.
AGAIN_S, AGAIN_S_MAX = 300.0, 3600.0

Outcome = Literal["stored", "rejected"]


class Book:
    def __init__(self, slice_of: Callable[[str], int], pages: Pages | None = None) -> None:
        pages = pages or Pages()
        self.withdrawn = pages.withdrawn
        self._slice_of = slice_of
        self._hours = dict(pages.hours)
        self._open: dict[tuple[str, int], list[Open]] = {}
        self._count = 0
        self._stored, self._rejected = Recent(), Recent()
        for one in pages.open:
            self._open.setdefault((one.device, one.boot), []).append(one)
            self._count += 1

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
            one.report = number

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
                for part in rest:
                    self._keep(Open(device, boot, *part, slice_, report.gateway, since_s, until_s, number), sums)

    def _keep(self, new: Open, sums: Sums) -> None:
        entries = self._open.setdefault((new.device, new.boot), [])
        if entries and _continues(entries[-1], new):
            last = entries[-1]
            last.high, last.until_s, last.report = new.high, new.until_s, new.report
        elif self._count < OPEN_MAX:
            entries.append(new)
            self._count += 1
        else:
            sums.acknowledged -= new.readings
            sums.unwatched += new.readings
            if not entries:
                del self._open[new.device, new.boot]

    # -- what became of it

    def account(self, runs: Iterable[Run], outcome: Outcome) -> None:
        """The tables have these: as readings, or as what was rejected."""
        recent = self._stored if outcome == "stored" else self._rejected
        for run in runs:
            recent.add(run)
            entries = self._open.get((run.device, run.boot))
            if entries is None:
                continue
            kept: list[Open] = []
            for one in entries:
                kept += self._cut(one, run, outcome)
            self._count += len(kept) - len(entries)
            if kept:
                self._open[run.device, run.boot] = kept
            else:
                del self._open[run.device, run.boot]

    def _cut(self, one: Open, run: Run, outcome: Outcome) -> list[Open]:
        low, high = max(one.low, run.low), min(one.high, run.high)
        if low > high:
            return [one]
        found, sums = high - low + 1, self._sums(one.hour)
        if outcome == "stored":
            sums.stored += found
        else:
            sums.rejected += found
        if one.named_s:
            sums.missing -= found
            self.withdrawn += found
        left = msgspec.structs.replace(one, high=low - 1)
        right = msgspec.structs.replace(one, low=high + 1)
        return [part for part in (left, right) if part.low <= part.high]

    # -- what is missing

    def due(self, settled: Mapping[int, int], now_s: float, count_max: int) -> list[Open]:
        """What the tables should have and is not accounted for: to be looked up now."""
        found: list[Open] = []
        for one in self._entries():
            if one.report <= settled.get(one.slice, 0) and _is_to_be_looked_up(one, now_s):
                found.append(one)
                if len(found) >= count_max:
                    break
        return found

    def missed(self, looked_up: Iterable[Open], now_s: float) -> list[Open]:
        """The table was asked for these, and what it has was accounted for. Those that are missing from now on.

        What is missing after the first look is only remembered as looked for.
        """
        named: list[Open] = []
        for asked in looked_up:
            for one in self._open.get((asked.device, asked.boot), ()):
                if one.report != asked.report or one.low > asked.high or one.high < asked.low:
                    continue
                if one.looked_s and not one.named_s:
                    one.named_s = now_s
                    self._sums(one.hour).missing += one.readings
                    named.append(one)
                one.looked_s = now_s
        return named

    def forget(self, bus_now_s: float, age_s_max: float) -> None:
        """Let go of what is too old to be checked, and of holes that are told long enough."""
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
            self._count += len(kept) - len(entries)
            if kept:
                self._open[key] = kept
            else:
                del self._open[key]

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
        return min((one.report - 1 for one in self._entries() if not one.named_s), default=report)

    def oldest_s(self) -> float | None:
        """When the oldest reading was acknowledged of which it is not known yet."""
        return min((one.since_s for one in self._entries() if not one.named_s), default=None)


def _continues(last: Open, new: Open) -> bool:
    """One that was looked for keeps its report: else each that follows would put its verdict off."""
    same = last.gateway == new.gateway and last.hour == new.hour and not last.looked_s
    return same and new.low == last.high + 1


def _is_to_be_looked_up(one: Open, now_s: float) -> bool:
    if one.named_s:
        return now_s - one.named_s < AGAIN_S_MAX and abs(now_s - one.looked_s) >= AGAIN_S
    return not one.looked_s or abs(now_s - one.looked_s) >= CONFIRM_S
