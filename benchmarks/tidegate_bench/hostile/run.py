"""The run: attacks in rounds of calm and hostility, then sieges, each with its twin in calm."""

import asyncio
import contextlib
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tidegate.brokers.nats.embedded import EmbeddedBrokers
from tidegate.bus.installation import load_installation
from tidegate.report.checks import Check, Report
from tidegate.report.progress import Progress
from tidegate_bench.hostile.absence import SETTINGS, Kept
from tidegate_bench.hostile.attacking import AttackResult
from tidegate_bench.hostile.besieged import Stood, stand
from tidegate_bench.hostile.bystanders import Bystanders
from tidegate_bench.hostile.checks import Round, absence_checks, checks
from tidegate_bench.hostile.gateways import Attacked, at_mosquitto, at_nats, with_few_files
from tidegate_bench.hostile.memory import Memory
from tidegate_bench.hostile.rounds import fight
from tidegate_bench.hostile.sieges import ABSENT, Siege, sieges
from tidegate_bench.rig.credentials import credentials
from tidegate_bench.rig.servers import starter

WARM_UP_S = 3.0
GATEWAYS = {"nats": at_nats, "mosquitto": at_mosquitto, "few files": with_few_files}


def run(progress: Progress, out: Path | None) -> Report:
    return Fight(progress, sieges()).run(out)


class Fight:
    """All attacks on the first gateway, then the chosen sieges, and what was found in them."""

    def __init__(self, progress: Progress, chosen: Sequence[Siege], *, rounds: bool = True) -> None:
        self._progress, self._sieges, self._fights_rounds = progress, chosen, rounds
        self._rounds: list[Round] = []
        self._results: list[AttackResult] = []
        self._stood: list[Stood] = []
        self._memories: dict[str, Memory] = {}
        self._kept: Kept | None = None

    def run(self, out: Path | None) -> Report:
        started_s = time.monotonic()
        with contextlib.ExitStack() as opened:
            self._progress.step("Starting a broker.")
            state = out or Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="tidegate-hostile-")))
            brokers = opened.enter_context(EmbeddedBrokers(state.absolute(), SETTINGS))
            servers = opened.enter_context(starter(state.absolute()))
            for name in dict.fromkeys(("nats", *(siege.gateway for siege in self._sieges))):
                self._progress.step(f"Starting a gateway: {name}.")
                with GATEWAYS[name](state.absolute(), servers) as attacked:
                    asyncio.run(self._at(name, attacked, brokers))
        return Report("bench hostile", list(self._rows()), self._checks(), round(time.monotonic() - started_s, 1))

    async def _at(self, gateway: str, attacked: Attacked, brokers: EmbeddedBrokers) -> None:
        as_whom = credentials(load_installation(attacked.state))
        memory = self._memories[gateway] = Memory(attacked.server.pid)
        async with Bystanders(attacked.listeners["mqtt"], as_whom) as others:
            await asyncio.sleep(WARM_UP_S)
            memory.begin()
            if gateway == "nats" and self._fights_rounds:
                async with memory.watched():
                    self._rounds, self._results = await fight(attacked, others, self._progress)
        async with memory.watched():
            for siege in self._sieges:
                if siege.gateway == gateway:
                    self._progress.step(f"Siege: {siege.name}.")
                    await self._stand(siege, attacked, brokers)

    async def _stand(self, siege: Siege, attacked: Attacked, brokers: EmbeddedBrokers) -> None:
        if siege.twin == "sink":
            self._stood.append(await stand(siege, attacked))
            return
        self._kept = Kept(brokers)
        with self._kept.watched():
            self._stood.append(await stand(siege, attacked, self._kept))

    def _rows(self) -> Iterator[dict[str, Any]]:
        yield from (msgspec.structs.asdict(result) for result in self._results)
        yield from ({"round": number, **one.row()} for number, one in enumerate(self._rounds))
        yield from (one.row() for one in self._stood)
        yield from ({"gateway": name, **memory.row()} for name, memory in self._memories.items())
        if self._kept is not None:
            yield self._kept.row()

    def _checks(self) -> list[Check]:
        every = [*self._rounds, *(one.round for one in self._stood)]
        growth_mib = max(memory.growth_mib for memory in self._memories.values())
        found = checks(every, self._results, memory_growth_mib=growth_mib)
        if self._kept is not None:
            kept = next(one.bytes_kept for one in self._stood if one.bytes_kept is not None)
            found += absence_checks(kept, SETTINGS.session_bytes_max, self._kept.alarm, ABSENT)
        return found
