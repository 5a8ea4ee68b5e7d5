"""Which identities a slice's readings already have, so that a retransmission is stored once.

What has been seen of one device and boot is an **entry** of 56 bytes: the two newest intervals of sequence numbers,
and a floor. Of what lies at or below the floor nothing is remembered. Devices number upwards, so nearly every reading
lies above its entry and is new for certain. All else (a repeat, a late one, one at or below a floor) is *doubtful*, and
whoever asks must look into the table itself. So a wrong "doubtful" costs a look, never a reading: entries may stand
under a hash of their names, and two names that collide merely share one.

Entries are sorted columns. Those of the last snapshot are a mapped file, which the system pages in and out as memory
allows; those that changed since then are in memory, and go to the file with the next snapshot. So memory does not grow
with the number of devices, whatever names they make up, and an entry that was not touched for the horizon is dropped.
The file is bounded as well: what is too much goes before its time, entries of few readings first, then the oldest.
Who makes up names or boots has to send many readings under each to drive out those who do not.

Where a snapshot was lost or cut, absence proves nothing: until the horizon has passed, who is not there is doubtful.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Keys = npt.NDArray[np.uint64]

# The columns of an entry. An interval that is not there has high -1.
KEY, FLOOR, LOW_1, HIGH_1, LOW_2, HIGH_2, DAY = range(7)
COLUMNS = 7
ENTRY_BYTES = COLUMNS * 8
ALL = 2**62  # a floor above every sequence

_PART_ENTRIES = 1 << 18
# An entry that stands for fewer readings is the first to go: it cost little to make, and few can come again.
_FEW_READINGS = 16
_MANY = 1 << 40  # above every day
_EMPTY: Integers = np.empty((COLUMNS, 0), np.int64)


class Runs(NamedTuple):
    """Consecutive sequence numbers, both ends included, sorted by key and low; of one key they do not overlap."""

    keys: Keys
    lows: Integers
    highs: Integers

    @classmethod
    def of(cls, keys: Keys, sequences: Integers) -> "Runs":
        """From identities that are sorted by key and sequence, each there once."""
        starts = np.flatnonzero(np.r_[True, (keys[1:] != keys[:-1]) | (np.diff(sequences) != 1)][: len(keys)])
        stops = np.r_[starts[1:], len(keys)][: len(starts)] - 1
        return cls(keys[starts], sequences[starts], sequences[stops])


class Cut(NamedTuple):
    """Which entries stay: ``entries`` in all, those above a rank and the first so many of that rank."""

    entries: int
    rank: int = -1
    of_rank: int = 0
    gone: int = 0
    newest_day: int = 0  # of those that go


class Doubtful(NamedTuple):
    """A part of a run that may have been seen before."""

    key: int
    low: int
    high: int


class KnownIdentities:
    """The identities of one slice. Days count from 1970; they only have to grow."""

    def __init__(self, base: Integers = _EMPTY, doubted_until_day: int = 0) -> None:
        """``base``: entries sorted by key, read only. Before ``doubted_until_day`` a missing entry proves nothing."""
        self._base = base
        self._recent = _EMPTY
        self.doubted_until_day = doubted_until_day

    @property
    def entries(self) -> int:
        return int(self.merged(0).shape[1])

    @property
    def recent_entries(self) -> int:
        """How many entries changed since the last snapshot: what is held in memory."""
        return int(self._recent.shape[1])

    def add(self, runs: Runs, day: int) -> list[Doubtful]:
        """Remember runs; say which parts of them cannot be told from what was there before."""
        if not len(runs.keys):
            return []
        firsts = np.flatnonzero(np.r_[True, runs.keys[1:] != runs.keys[:-1]])
        counts = np.diff(np.r_[firsts, len(runs.keys)])
        keys = runs.keys[firsts]
        entries, is_there = self._find(keys)
        if day < self.doubted_until_day:
            entries[FLOOR, ~is_there] = ALL
        plain = runs.lows[firsts] > np.maximum(entries[HIGH_2], entries[FLOOR])
        _append(entries, plain, runs, firsts, counts)
        doubtful: list[Doubtful] = []
        for place in np.flatnonzero(~plain).tolist():
            at, count = int(firsts[place]), int(counts[place])
            spans = zip(runs.lows[at : at + count].tolist(), runs.highs[at : at + count].tolist(), strict=True)
            doubtful += (Doubtful(int(keys[place]), low, high) for low, high in _insert(entries, place, spans))
        entries[DAY] = day
        self._put(keys, entries)
        return doubtful

    def absent(self, keys: Keys, day: int) -> Keys:
        """Those that have no entry although they may have been seen: ask the table how far each was."""
        if day >= self.doubted_until_day:
            return keys[:0]
        return keys[~self._find(keys)[1]]

    def learn(self, keys: Keys, highs: Integers, day: int) -> None:
        """What the table says of ``absent`` ones, sorted by key: nothing above ``highs`` (-1: nothing) was seen."""
        entries = _blank(keys)
        entries[FLOOR] = highs
        entries[DAY] = day
        self._put(keys, entries)

    def merged(self, day_min: int) -> Integers:
        """All entries that were touched on or after a day, sorted by key: the base of the next snapshot."""
        return np.concatenate(list(self.parts(day_min)), axis=1)

    def cut(self, day_min: int, entries_max: int) -> Cut:
        """What to leave out so that no more than so many entries are left."""
        counts: Counter[int] = Counter()
        for part in self.parts(day_min):
            ranks, numbers = np.unique(_ranks(part), return_counts=True)
            counts.update(dict(zip(ranks.tolist(), numbers.tolist(), strict=True)))
        surplus = counts.total() - entries_max
        if surplus <= 0:
            return Cut(counts.total())
        going = sorted(counts)
        reached = np.cumsum([counts[rank] for rank in going])
        place = int(np.searchsorted(reached, surplus))
        days = [rank % _MANY for rank in going[: place + 1]]
        return Cut(entries_max, going[place], int(reached[place]) - surplus, surplus, max(days))

    def doubt(self, until_day: int) -> None:
        """Entries go although they may be asked for: before that day a missing one proves nothing."""
        self.doubted_until_day = max(self.doubted_until_day, until_day)

    def kept(self, day_min: int, cut: Cut) -> Iterator[Integers]:
        """What ``parts`` gives, without what is cut off."""
        left = cut.of_rank
        for part in self.parts(day_min):
            ranks = _ranks(part)
            border = np.flatnonzero(ranks == cut.rank)
            stays = ranks > cut.rank
            stays[border[:left]] = True
            left -= min(left, len(border))
            yield part if stays.all() else np.ascontiguousarray(part[:, stays])

    def parts(self, day_min: int) -> Iterator[Integers]:
        """The same bit by bit: the base may be larger than memory."""
        recent, taken = self._recent, 0
        for start in range(0, max(1, self._base.shape[1]), _PART_ENTRIES):
            part = self._base[:, start : start + _PART_ENTRIES]
            following = self._base[KEY, start + _PART_ENTRIES : start + _PART_ENTRIES + 1].view(np.uint64)
            until = int(np.searchsorted(_keys(recent), following[0])) if following.size else recent.shape[1]
            if until > taken:
                new, taken = recent[:, taken:until], until
                replaced = np.isin(_keys(part), _keys(new), assume_unique=True)
                together = np.concatenate((part[:, ~replaced], new), axis=1)
                part = together[:, np.argsort(_keys(together), kind="stable")]
            yield np.ascontiguousarray(part[:, part[DAY] >= day_min])

    def rebase(self, base: Integers) -> None:
        """``base`` is what ``merged`` gave, now in a file: nothing of it has to stay in memory."""
        self._base, self._recent = base, _EMPTY

    def _find(self, keys: Keys) -> tuple[Integers, npt.NDArray[np.bool_]]:
        """Their entries (blank ones where there is none), and which were there."""
        entries = _blank(keys)
        found = np.zeros(len(keys), bool)
        for stored in (self._base, self._recent):  # what is recent outdates the base
            places = np.searchsorted(_keys(stored), keys)
            within = np.flatnonzero(places < stored.shape[1])
            hits = within[_keys(stored)[places[within]] == keys[within]]
            entries[:, hits] = stored[:, places[hits]]
            found[hits] = True
        return entries, found

    def _put(self, keys: Keys, entries: Integers) -> None:
        recent = _keys(self._recent)
        places = np.searchsorted(recent, keys)
        is_there = np.zeros(len(keys), bool)
        within = places < len(recent)
        is_there[within] = recent[places[within]] == keys[within]
        self._recent[:, places[is_there]] = entries[:, is_there]
        if not is_there.all():
            self._recent = np.insert(self._recent, places[~is_there], entries[:, ~is_there], axis=1)


def _keys(entries: Integers) -> Keys:
    keys: Keys = entries[KEY].view(np.uint64)
    return keys


def _ranks(entries: Integers) -> Integers:
    """The lowest is the first to go: entries of few readings by their day, then the others by theirs."""
    readings = entries[HIGH_1] - entries[LOW_1] + entries[HIGH_2] - entries[LOW_2]
    ranks: Integers = entries[DAY] + np.where(readings + 2 < _FEW_READINGS, 0, _MANY)
    return ranks


def _blank(keys: Keys) -> Integers:
    entries = np.zeros((COLUMNS, len(keys)), np.int64)
    entries[KEY] = keys.view(np.int64)
    entries[FLOOR] = entries[HIGH_1] = entries[HIGH_2] = -1
    return entries


def _append(entries: Integers, plain: npt.NDArray[np.bool_], runs: Runs, firsts: Integers, counts: Integers) -> None:
    """Put runs that lie wholly above their entry behind it: only its last two intervals stay."""
    places = np.flatnonzero(plain)
    first, count = firsts[places], counts[places]
    last = first + count - 1
    floor, low_1, high_1, low_2, high_2 = (entries[column, places] for column in (FLOOR, LOW_1, HIGH_1, LOW_2, HIGH_2))
    adjoins = (runs.lows[first] == high_2 + 1) & (high_2 >= 0)
    one, two = count == 1, count == 2
    # The first run's interval, with what it adjoins; the interval before that one; and the high that comes before both.
    own_low = np.where(adjoins, low_2, runs.lows[first])
    before_low, before_high = np.where(adjoins, low_1, low_2), np.where(adjoins, high_1, high_2)
    older = np.where(adjoins, floor, np.maximum(floor, high_1))
    second = np.maximum(last - 1, first)
    third = np.maximum(last - 2, first)
    entries[LOW_2, places] = np.where(one, own_low, runs.lows[last])
    entries[HIGH_2, places] = runs.highs[last]
    entries[LOW_1, places] = np.where(one, before_low, np.where(two, own_low, runs.lows[second]))
    entries[HIGH_1, places] = np.where(one, before_high, runs.highs[second])
    # A floor covers what stood before the two; an interval that is not there (-1) raises none.
    entries[FLOOR, places] = np.where(
        one, older, np.where(two, np.maximum(older, before_high), np.maximum(older, runs.highs[third]))
    )


def _insert(entries: Integers, place: int, spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Add spans to one entry one by one; the parts of them that were there, or at or below its floor."""
    _, floor, low_1, high_1, low_2, high_2, _ = entries[:, place].tolist()
    intervals = [(low, high) for low, high in ((low_1, high_1), (low_2, high_2)) if high >= 0]
    doubtful: list[tuple[int, int]] = []
    for low, high in spans:
        if low <= floor:
            doubtful.append((low, min(high, floor)))
        above = max(low, floor + 1)
        common = [(max(above, start), min(high, stop)) for start, stop in intervals]
        doubtful += [(start, stop) for start, stop in common if start <= stop]
        if above <= high:
            intervals = _with(intervals, above, high)
        while len(intervals) > 2:
            floor = intervals.pop(0)[1]
    padded = [(0, -1)] * (2 - len(intervals)) + intervals
    entries[FLOOR:DAY, place] = (floor, *padded[0], *padded[1])
    return doubtful


def _with(intervals: Sequence[tuple[int, int]], low: int, high: int) -> list[tuple[int, int]]:
    """One more interval among disjoint ones in ascending order; those it touches become one with it."""
    touched = [(start, stop) for start, stop in intervals if start <= high + 1 and low <= stop + 1]
    merged = (min([low, *(start for start, _ in touched)]), max([high, *(stop for _, stop in touched)]))
    return sorted([*(one for one in intervals if one not in touched), merged])


def keys_of(devices: Sequence[str], boots: Integers) -> Keys:
    """The key of each (device, boot): the same on every machine, as snapshots are read by other nodes than wrote them.

    A digest of both: where they are mixed in a way that can be undone, a device can choose a boot that has the key of
    another one, and answer for it while the past is doubtful.
    """
    numbers = boots.astype("<i8").tobytes()
    digests = b"".join(
        hashlib.blake2b(numbers[at : at + 8] + device.encode(), digest_size=8).digest()
        for at, device in zip(range(0, len(numbers), 8), devices, strict=True)
    )
    return np.frombuffer(digests, "<u8").astype(np.uint64)
