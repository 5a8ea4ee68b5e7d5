"""What a gateway says about itself on the control bus: once a second, under a lease. Who stops says that as well: one
that only falls silent is counted on for a while."""

import asyncio
import contextlib
from collections.abc import Callable

import msgspec
import psutil

from tidegate.bus.documents import GATEWAYS
from tidegate.bus.watching import Watcher
from tidegate.gateway.shared import layout
from tidegate.gateway.shared.memory import Shared
from tidegate.model.errors import BrokerUnavailableError
from tidegate.model.observations import GatewayState, ProcessState

STATE_S = 1.0
STATE_LEASE_S = 5.0


async def report(watcher: Watcher, name: str, state: Callable[[], GatewayState]) -> None:
    try:
        while True:
            with contextlib.suppress(BrokerUnavailableError):
                await watcher.put(GATEWAYS, state(), name, lease_s=STATE_LEASE_S)
            await asyncio.sleep(STATE_S)
    except asyncio.CancelledError:
        with contextlib.suppress(BrokerUnavailableError, TimeoutError):
            async with asyncio.timeout(STATE_S):
                left = msgspec.structs.replace(state(), left=True)
                await watcher.put(GATEWAYS, left, name, lease_s=STATE_LEASE_S)
        raise


class ProcessLoads:
    """The processes one by one. A share of a core is that since the state before."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._known: dict[int, psutil.Process] = {}

    def states(self) -> tuple[ProcessState, ...]:
        rows = [row.cells for row in self._shared.rows if row.cells[layout.READY]]
        self._known = {pid: self._known.get(pid) or psutil.Process(pid) for pid in _living(rows)}
        return tuple(
            ProcessState(
                number=cells[layout.PROCESS],
                pid=cells[layout.PID],
                connections=cells[layout.CONNECTIONS],
                publishes=cells[layout.PUBLISHES],
                cpu_share=self._cpu_share(cells[layout.PID]),
                late_s=cells[layout.LATE_US] / 1e6,
                draining=bool(cells[layout.DRAINING]),
            )
            for cells in sorted(rows, key=lambda cells: cells[layout.PROCESS])
        )

    def _cpu_share(self, pid: int) -> float:
        try:
            return self._known[pid].cpu_percent() / 100 if pid in self._known else 0.0
        except psutil.NoSuchProcess:
            return 0.0


def _living(rows: list[memoryview]) -> list[int]:
    return [cells[layout.PID] for cells in rows if psutil.pid_exists(cells[layout.PID])]
