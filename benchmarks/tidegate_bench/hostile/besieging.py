"""The process that besieges: ``python -m tidegate_bench.hostile.besieging`` with a ``SiegeOrder`` on standard input.

Like the one that attacks it steps back for others.
"""

import asyncio
import contextlib
import itertools
import math
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec

from tidegate.bus.installation import load_installation
from tidegate_bench.hostile.attacking import CANNOT_CONNECT, NICENESS, as_somebody, attempted, ending
from tidegate_bench.hostile.sieges import Siege, sieges
from tidegate_bench.rig import processes
from tidegate_bench.rig.credentials import credentials

SPARE = 2
AGAIN_S = 0.1  # after a connection that could not even be made


class SiegeOrder(msgspec.Struct, frozen=True, kw_only=True):
    listeners: dict[str, tuple[str, int]]
    state: str  # directory that says as whom to connect
    name: str  # of the siege
    seconds: float
    attempts_max: int = 0  # in these seconds; 0: as many as it can


class SiegeResult(msgspec.Struct, frozen=True, kw_only=True):
    attempts: int
    attempts_per_s: float
    seconds_mean: float  # that an attempt took
    processor_s: float  # of this process
    endings: dict[str, int]  # which attack, and what happened, in words -> how often


class Pace:
    """So many in a second, and so many at once: all sockets of a siege begin together, and often go on together."""

    def __init__(self, per_s: float, burst: int) -> None:
        self._interval_s = 1 / per_s if per_s else 0.0
        self._burst_s = burst * self._interval_s
        self._next_s = -math.inf

    def wait_s(self, now_s: float) -> float:
        """How long the next one has to wait; without a rate it never has to."""
        due_s = max(self._next_s, now_s - self._burst_s)
        self._next_s = due_s + self._interval_s
        return max(0.0, due_s - now_s)


async def besiege(order: SiegeOrder) -> SiegeResult:
    siege = next(one for one in sieges() if one.name == order.name)
    number, endings = itertools.count(), Counter[str]()
    began_s = time.monotonic()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(order.seconds):
            await _hold(siege, order, number, endings)
    took_s, attempts, times = time.monotonic() - began_s, next(number), os.times()
    return SiegeResult(
        attempts=attempts,
        attempts_per_s=attempts / took_s,
        # None of the sockets rests, so this is the mean; nobody has to wait for the last ones to end.
        seconds_mean=siege.sockets * took_s / attempts,
        processor_s=round(times.user + times.system, 2),
        endings=dict(endings.most_common()),
    )


async def _hold(siege: Siege, order: SiegeOrder, number: Iterator[int], endings: Counter[str]) -> None:
    as_whom = credentials(load_installation(Path(order.state)))
    behind_first = max(1, order.attempts_max - siege.sockets)
    pace = Pace(behind_first / order.seconds if order.attempts_max else 0.0, siege.sockets)

    async def hold_one() -> None:
        while True:
            await asyncio.sleep(pace.wait_s(time.monotonic()))
            turn = next(number)
            attack = as_somebody(siege.attacks[turn % len(siege.attacks)], turn, as_whom)
            closed, _, words = await attempted(attack, order.listeners[attack.listener], siege.source)
            endings[f"{attack.name}: {ending(closed, words)}"] += 1
            if words == CANNOT_CONNECT:
                await asyncio.sleep(AGAIN_S)

    async with asyncio.TaskGroup() as sockets:
        # Who has to keep to a pace must be able to.
        for _ in range(siege.sockets if not order.attempts_max else SPARE * siege.sockets):
            sockets.create_task(hold_one())


def main() -> None:
    os.nice(NICENESS)
    processes.allow_open_files()
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=SiegeOrder)
    sys.stdout.buffer.write(msgspec.json.encode(asyncio.run(besiege(order))))


if __name__ == "__main__":
    main()
