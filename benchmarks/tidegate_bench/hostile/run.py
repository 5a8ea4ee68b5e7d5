"""The run: calm and hostile by turns, on one gateway with two processes. In calm the same attacks go to a sink."""

import asyncio
import contextlib
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tidegate.brokers.nats.embedded import EmbeddedBrokers
from tidegate.brokers.settings import BrokerSettings
from tidegate.bus.installation import load_installation
from tidegate.machine.ports import HOST
from tidegate.report.checks import Report
from tidegate.report.progress import Progress
from tidegate_bench.hostile.attacking import AttackOrder, AttackResult
from tidegate_bench.hostile.attacks import CONNECT_TIMEOUT_S, attacks
from tidegate_bench.hostile.bystanders import Bystanders
from tidegate_bench.hostile.checks import Round, checks
from tidegate_bench.rig import processes
from tidegate_bench.rig.certificates import Certificate
from tidegate_bench.rig.credentials import credentials
from tidegate_bench.rig.servers import ServerProcess, Starter, starter

ROUNDS = 6
WARM_UP_S = 3.0
SETTLE_S = 2.0
WATCH_S = 0.25
MIB = 1024**2


def run(progress: Progress, out: Path | None) -> Report:
    started_s = time.monotonic()
    with contextlib.ExitStack() as opened:
        progress.step("Starting a broker and a gateway with four listeners.")
        state = out or Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="tidegate-hostile-")))
        opened.enter_context(EmbeddedBrokers(state, BrokerSettings(nodes=1, slices=1)))
        servers = opened.enter_context(starter(state.absolute()))
        listeners, settings = _listeners(state.absolute(), servers)
        attacked = opened.enter_context(servers.gateway(state, settings))
        order = AttackOrder(
            listeners={"mqtt": attacked.address, **listeners},
            state=str(attacked.state),
            names=(),
        )
        outcome = asyncio.run(_Fight(order, attacked, progress).fight())
    rows, found = outcome
    return Report("bench hostile", rows, found, round(time.monotonic() - started_s, 1))


def _listeners(directory: Path, servers: Starter) -> tuple[dict[str, tuple[str, int]], dict[str, Any]]:
    """Three listeners beside the plain one, and the settings that open them."""
    certificate = Certificate.made(directory)
    ports = {name: servers.free_port() for name in ("websocket", "proxy", "tls")}
    listeners = [
        {"port": ports["websocket"], "protocol": "websocket"},
        {"port": ports["proxy"], "proxy_protocol": True},
        {"port": ports["tls"], "certificate": str(certificate.certificate), "key": str(certificate.key)},
    ]
    settings = {"processes": 2, "connect_timeout_s": CONNECT_TIMEOUT_S, "listeners": listeners}
    return {name: (HOST, port) for name, port in ports.items()}, settings


@contextlib.asynccontextmanager
async def _sink() -> AsyncIterator[tuple[str, int]]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tidegate_bench.hostile.sink"), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        yield HOST, int(await process.stdout.readline())
    finally:
        process.terminate()
        await process.wait()


class _Fight:
    """Rounds of calm and of attacks, each attack in one of them, while others publish all along."""

    def __init__(self, order: AttackOrder, attacked: ServerProcess, progress: Progress) -> None:
        self._order, self._attacked, self._progress = order, attacked, progress
        self._peak_mib = 0.0
        self._sink = (HOST, 0)
        self._rounds: list[Round] = []
        self._results: list[AttackResult] = []

    async def fight(self) -> tuple[list[dict[str, Any]], list[Any]]:
        order = self._order
        names = [attack.name for attack in attacks()]
        as_whom = credentials(load_installation(Path(order.state)))
        async with _sink() as sink, Bystanders(order.listeners["mqtt"], as_whom) as others:
            self._sink = sink
            await asyncio.sleep(WARM_UP_S)
            before_mib = self._memory_mib()
            watching = asyncio.create_task(self._watch())
            for number in range(ROUNDS):
                await self._round(number, names[number::ROUNDS], others)
            after_mib = self._memory_mib()
            watching.cancel()
        found = checks(self._rounds, self._results, memory_growth_mib=after_mib - before_mib, others_lost=others.lost)
        rows: list[dict[str, Any]] = [msgspec.structs.asdict(result) for result in self._results]
        rows += [one.row(number) for number, one in enumerate(self._rounds)]
        memory = {"before": before_mib, "peak": self._peak_mib, "after": after_mib}
        rows.append({f"memory_mib_{name}": round(value, 1) for name, value in memory.items()})
        return rows, found

    async def _round(self, number: int, names: Sequence[str], others: Bystanders) -> None:
        order = msgspec.structs.replace(self._order, names=tuple(names))
        harmless = msgspec.structs.replace(order, listeners=dict.fromkeys(order.listeners, self._sink))
        attackers = [await self._recruit(), await self._recruit()]
        self._progress.step(f"Round {number + 1} of {ROUNDS}: the attackers meet a sink.")
        start, start_new = len(others.delays_s), len(others.connects_s)
        await attackers[0].communicate(msgspec.json.encode(harmless))
        middle, middle_new = len(others.delays_s), len(others.connects_s)
        self._progress.step(f"Round {number + 1} of {ROUNDS}: {', '.join(names)}.")
        output, _ = await attackers[1].communicate(msgspec.json.encode(order))
        self._results += msgspec.json.decode(output, type=list[AttackResult])
        self._rounds.append(
            Round(
                calm_s=tuple(others.delays_s[start:middle]),
                hostile_s=tuple(others.delays_s[middle:]),
                calm_new_s=tuple(others.connects_s[start_new:middle_new]),
                hostile_new_s=tuple(others.connects_s[middle_new:]),
            )
        )

    @staticmethod
    async def _recruit() -> asyncio.subprocess.Process:
        """The attacker, which waits for its order. Its start is work as well: it belongs to neither phase."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tidegate_bench.hostile.attacking"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        await asyncio.sleep(SETTLE_S)
        return process

    async def _watch(self) -> None:
        while True:
            self._peak_mib = max(self._peak_mib, self._memory_mib())
            await asyncio.sleep(WATCH_S)

    def _memory_mib(self) -> float:
        """Resident memory of every process of the gateway."""
        return processes.rss_bytes(self._attacked.pid) / MIB
