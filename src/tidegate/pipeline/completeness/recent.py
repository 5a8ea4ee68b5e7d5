"""What the tables got lately, by device and boot. Pure, bounded, and free to forget."""

import sys
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import NamedTuple

BOOTS_MAX = 200_000
RUNS_MAX = 64  # of one of them
BYTES_MAX = 128 * 1024**2  # of all: a name may be long
_KEPT_BYTES, _RUN_BYTES = 300, 130  # what Python needs beside a name

Interval = tuple[int, int]


class Run(NamedTuple):
    """Consecutive sequence numbers of one device and boot, both ends included."""

    device: str
    boot: int
    low: int
    high: int


class Recent:
    """Where there is too much, the devices that were silent longest are forgotten, and of one its lowest runs."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], list[Interval]] = {}
        self._bytes = 0

    def add(self, run: Run) -> None:
        key = (run.device, run.boot)
        runs = self._known.pop(key, None)  # put back as the newest
        if runs is None:
            runs = []
            self._bytes += _KEPT_BYTES + sys.getsizeof(run.device)
        before = len(runs)
        if runs and runs[-1][0] <= run.low <= runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], max(run.high, runs[-1][1]))
        elif not runs or run.low > runs[-1][1]:
            runs.append((run.low, run.high))
            del runs[:-RUNS_MAX]
        else:
            runs = joined([*runs, (run.low, run.high)])[-RUNS_MAX:]
        self._known[key] = runs
        self._bytes += _RUN_BYTES * (len(runs) - before)
        while len(self._known) > BOOTS_MAX or self._bytes > BYTES_MAX:
            self._forget(next(iter(self._known)))

    def _forget(self, key: tuple[str, int]) -> None:
        self._bytes -= _KEPT_BYTES + sys.getsizeof(key[0]) + _RUN_BYTES * len(self._known.pop(key))

    def without(self, device: str, boot: int, parts: Iterable[Interval]) -> list[Interval]:
        """What of these is not known here."""
        known = self._known.get((device, boot), [])
        return [rest for low, high in parts for rest in without(low, high, known)]


def readings(parts: Iterable[Interval]) -> int:
    return sum(high - low + 1 for low, high in parts)


def without(low: int, high: int, taken: Sequence[Interval]) -> list[Interval]:
    """What of a run lies in none of these, which are ascending and apart."""
    rest = []
    for number in range(bisect_left(taken, low, key=_high), len(taken)):
        taken_low, taken_high = taken[number]
        if taken_low > high:
            break
        if taken_low > low:
            rest.append((low, taken_low - 1))
        low = taken_high + 1
    if low <= high:
        rest.append((low, high))
    return rest


def _high(interval: Interval) -> int:
    return interval[1]


def joined(runs: list[Interval]) -> list[Interval]:
    found: list[Interval] = []
    for low, high in sorted(runs):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return found
