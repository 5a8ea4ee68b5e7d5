"""Resident memory of all processes of a gateway: before, at most, and after."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from tidegate_bench.rig import processes

WATCH_S = 0.25
MIB = 1024**2


class Memory:
    def __init__(self, pid: int | None) -> None:
        self._pid = pid
        self.before_mib = self.peak_mib = self.after_mib = self._now_mib()

    @property
    def growth_mib(self) -> float:
        return self.after_mib - self.before_mib

    def row(self) -> dict[str, float]:
        found = {"before": self.before_mib, "peak": self.peak_mib, "after": self.after_mib}
        return {f"memory_mib_{name}": round(value, 1) for name, value in found.items()}

    def begin(self) -> None:
        self.before_mib = self._now_mib()

    @contextlib.asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """May be done several times; the last one tells what it came to."""
        watching = asyncio.create_task(self._watch())
        try:
            yield
            self.after_mib = self._now_mib()
        finally:
            watching.cancel()

    async def _watch(self) -> None:
        while True:
            self.peak_mib = max(self.peak_mib, self._now_mib())
            await asyncio.sleep(WATCH_S)

    def _now_mib(self) -> float:
        return processes.rss_bytes(self._pid) / MIB
