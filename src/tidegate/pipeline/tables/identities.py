"""Which identities a slice's readings already have, so that a retransmission is stored once.

Devices number their readings upwards, so what has been seen of one device and boot is a few intervals, usually one.
Memory is bounded without guessing: where intervals or boots become too many the oldest are *forgotten*, and an
identity in the forgotten part is *doubtful*. Whoever asks must then look into the table itself.
"""

from bisect import bisect_left
from typing import Any, NamedTuple

import pyarrow as pa

INTERVALS_MAX = 64
BOOTS_MAX = 4
_ALL = 2**62

SNAPSHOT = pa.schema(
    [
        ("device", pa.string()),
        ("boot", pa.int64()),
        ("low", pa.int64()),
        ("high", pa.int64()),
        # A mark, not an interval: all of this boot up to ``high`` (or, with high -1, all boots up to it) is forgotten.
        ("forgotten", pa.bool_()),
    ]
)


class Run(NamedTuple):
    """Consecutive sequence numbers of one device and boot, both ends included."""

    device: str
    boot: int
    low: int
    high: int


class Recognised(NamedTuple):
    """What of a run is known already, and what must be looked up because it is forgotten."""

    known: list[Run]
    doubtful: list[Run]


class _Track:
    """What has been seen of one device and boot: disjoint, non-adjacent intervals in ascending order."""

    __slots__ = ("floor", "highs", "lows")

    def __init__(self) -> None:
        self.lows: list[int] = []
        self.highs: list[int] = []
        self.floor = -1

    def add(self, low: int, high: int) -> list[tuple[int, int]]:
        """Add an interval; return the parts of it that were there before."""
        highs = self.highs
        if not highs or low > highs[-1] + 1:
            self.lows.append(low)
            highs.append(high)
            if len(highs) > INTERVALS_MAX:
                self.floor = max(self.floor, highs.pop(0))
                self.lows.pop(0)
            return []
        if low == highs[-1] + 1:
            highs[-1] = high
            return []
        return self._insert(low, high)

    def _insert(self, low: int, high: int) -> list[tuple[int, int]]:
        lows, highs = self.lows, self.highs
        start = bisect_left(highs, low - 1)
        stop = start
        overlaps = []
        merged_low, merged_high = low, high
        while stop < len(lows) and lows[stop] <= high + 1:
            common_low, common_high = max(low, lows[stop]), min(high, highs[stop])
            if common_low <= common_high:
                overlaps.append((common_low, common_high))
            merged_low = min(merged_low, lows[stop])
            merged_high = max(merged_high, highs[stop])
            stop += 1
        lows[start:stop] = [merged_low]
        highs[start:stop] = [merged_high]
        if len(highs) > INTERVALS_MAX:
            self.floor = max(self.floor, highs.pop(0))
            lows.pop(0)
        return overlaps


class KnownIdentities:
    """The identities of one slice (or of one batch)."""

    def __init__(self) -> None:
        self._devices: dict[str, dict[int, _Track]] = {}
        self._forgotten_boot: dict[str, int] = {}

    def add(self, run: Run) -> Recognised:
        """Remember a run; say which parts of it were there before and which cannot be told."""
        boots = self._devices.setdefault(run.device, {})
        track = boots.get(run.boot)
        doubtful: list[Run] = []
        if track is None:
            track = boots[run.boot] = _Track()
            if run.boot <= self._forgotten_boot.get(run.device, -1):
                # What this boot sent before it was forgotten cannot be told from what is new: ask each time.
                track.floor = _ALL
                doubtful.append(run)
            if len(boots) > BOOTS_MAX:
                self._forget_oldest(run.device, boots, run.boot)
        elif run.low <= track.floor:
            doubtful.append(Run(run.device, run.boot, run.low, min(run.high, track.floor)))
        known = [Run(run.device, run.boot, low, high) for low, high in track.add(run.low, run.high)]
        return Recognised(known, doubtful)

    def _forget_oldest(self, device: str, boots: dict[int, _Track], current: int) -> None:
        oldest = min(boot for boot in boots if boot != current)
        del boots[oldest]
        self._forgotten_boot[device] = max(oldest, self._forgotten_boot.get(device, -1))

    def runs(self) -> list[Run]:
        return [
            Run(device, boot, low, high)
            for device, boots in self._devices.items()
            for boot, track in boots.items()
            for low, high in zip(track.lows, track.highs, strict=True)
        ]

    def snapshot(self) -> pa.Table:
        rows = [(*run, False) for run in self.runs()]
        for device, boots in self._devices.items():
            rows.extend((device, boot, -1, track.floor, True) for boot, track in boots.items() if track.floor >= 0)
        rows.extend((device, boot, -1, -1, True) for device, boot in self._forgotten_boot.items())
        columns: list[Any] = list(zip(*rows, strict=True)) if rows else [[] for _ in SNAPSHOT]
        return pa.table(
            [pa.array(column, field.type) for column, field in zip(columns, SNAPSHOT, strict=True)], SNAPSHOT
        )

    @classmethod
    def restore(cls, table: pa.Table) -> "KnownIdentities":
        seen = cls()
        for device, boot, low, high, forgotten in zip(
            *(table[name].to_pylist() for name in SNAPSHOT.names), strict=True
        ):
            if not forgotten:
                seen._devices.setdefault(device, {}).setdefault(boot, _Track()).add(low, high)
        for device, boot, _, high, forgotten in zip(*(table[name].to_pylist() for name in SNAPSHOT.names), strict=True):
            if forgotten and high < 0:
                seen._forgotten_boot[device] = boot
            elif forgotten:
                seen._devices.setdefault(device, {}).setdefault(boot, _Track()).floor = high
        return seen
