"""What the tables got lately, by device and boot. Pure, bounded, and free to forget."""

from collections.abc import Iterable
from typing import NamedTuple

BOOTS_MAX = 200_000
RUNS_MAX = 64  # of one of them

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

    def add(self, run: Run) -> None:
        key = (run.device, run.boot)
        runs = self._known.pop(key, [])  # put back as the newest
        if runs and runs[-1][0] <= run.low <= runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], max(run.high, runs[-1][1]))
        else:
            runs = _joined([*runs, (run.low, run.high)])[-RUNS_MAX:]
        self._known[key] = runs
        while len(self._known) > BOOTS_MAX:
            del self._known[next(iter(self._known))]

    def without(self, device: str, boot: int, parts: Iterable[Interval]) -> list[Interval]:
        """What of these is not known here."""
        known = self._known.get((device, boot), [])
        return [rest for low, high in parts for rest in _without(low, high, known)]


def readings(parts: Iterable[Interval]) -> int:
    return sum(high - low + 1 for low, high in parts)


def _without(low: int, high: int, taken: Iterable[Interval]) -> list[Interval]:
    """What of a run lies in none of these, which are ascending and apart."""
    rest = []
    for taken_low, taken_high in taken:
        if taken_high < low:
            continue
        if taken_low > high:
            break
        if taken_low > low:
            rest.append((low, taken_low - 1))
        low = taken_high + 1
    if low <= high:
        rest.append((low, high))
    return rest


def _joined(runs: list[Interval]) -> list[Interval]:
    found: list[Interval] = []
    for low, high in sorted(runs):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(high, found[-1][1]))
        else:
            found.append((low, high))
    return found
