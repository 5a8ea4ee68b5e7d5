"""One siege, and afterwards its twin in calm: as many attempts, each as long.

The siege comes first, because only then is known what the twin has to do; that others are served in calm shows that
the gateway has recovered.
"""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec

from tidegate.bus.installation import load_installation
from tidegate.bus.issued import Credentials
from tidegate_bench.hostile.absence import Kept, subscribe_and_leave
from tidegate_bench.hostile.attackers import command, recruit, sink
from tidegate_bench.hostile.besieging import SiegeOrder, SiegeResult
from tidegate_bench.hostile.bystanders import Bystanders
from tidegate_bench.hostile.checks import Round
from tidegate_bench.hostile.gateways import Attacked
from tidegate_bench.hostile.http_senders import HttpSenders
from tidegate_bench.hostile.sieges import Siege
from tidegate_bench.hostile.waits import Sample, together
from tidegate_bench.rig import processes
from tidegate_bench.rig.credentials import credentials

WARM_UP_S = 1.0


class Stood(msgspec.Struct, frozen=True, kw_only=True):
    """A siege that is over: what others met, and what the attackers did in both phases."""

    name: str
    round: Round
    hostile: SiegeResult
    calm: SiegeResult
    open_files: tuple[int, int]  # of the gateway, before and after
    bytes_kept: int | None = None  # for the absent at its end, where somebody is

    def row(self) -> dict[str, Any]:
        return {
            "siege": self.name,
            **self.round.row(),
            "open_files_before": self.open_files[0],
            "open_files_after": self.open_files[1],
            **{f"hostile_{name}": value for name, value in msgspec.structs.asdict(self.hostile).items()},
            **{f"calm_{name}": value for name, value in msgspec.structs.asdict(self.calm).items() if name != "endings"},
        }


async def stand(siege: Siege, attacked: Attacked, kept: Kept | None = None) -> Stood:
    """``kept``: an application is absent meanwhile, and this is what is kept for it."""
    as_whom = credentials(load_installation(attacked.state))
    order = SiegeOrder(listeners=attacked.listeners, state=str(attacked.state), name=siege.name, seconds=siege.seconds)
    async with _others(siege, attacked, as_whom) as sample:
        attacker = await recruit("besieging")
        files_before = processes.open_files_of([attacked.server.pid])
        if kept is not None:
            await subscribe_and_leave(attacked.listeners["mqtt"], as_whom)
        sample()
        result = await _carried_out(attacker, order)
        hostile = sample()
        bytes_kept = kept.bytes_now if kept is not None else None
        calm_result = await _twin(siege, order, result, before=sample)
        calm = sample()
        files_after = processes.open_files_of([attacked.server.pid])
    return Stood(
        name=siege.name,
        round=Round(calm=calm, hostile=hostile),
        hostile=result,
        calm=calm_result,
        open_files=(files_before, files_after),
        bytes_kept=bytes_kept,
    )


async def _twin(siege: Siege, order: SiegeOrder, result: SiegeResult, *, before: Callable[[], Any]) -> SiegeResult:
    paced = msgspec.structs.replace(order, attempts_max=result.attempts)
    attacker = await recruit("besieging")
    if siege.twin == "here":
        before()
        return await _carried_out(attacker, paced)
    async with sink(result.seconds_mean) as address:
        before()
        return await _carried_out(
            attacker, msgspec.structs.replace(paced, listeners=dict.fromkeys(order.listeners, address))
        )


async def _carried_out(attacker: asyncio.subprocess.Process, order: SiegeOrder) -> SiegeResult:
    return msgspec.json.decode(await command(attacker, msgspec.json.encode(order)), type=SiegeResult)


@contextlib.asynccontextmanager
async def _others(siege: Siege, attacked: Attacked, as_whom: Credentials) -> AsyncIterator[Callable[[], Sample]]:
    """Everybody who behaves, and what they met since the last look."""
    listeners = attacked.listeners
    tls = None
    if siege.newcomers == "tls":
        assert attacked.certificate is not None
        tls = ssl.create_default_context(cafile=attacked.certificate.certificate)
    others: list[Bystanders | HttpSenders] = [
        Bystanders(listeners["mqtt"], as_whom, newcomers=listeners[siege.newcomers], tls=tls)
    ]
    others += [HttpSenders(listeners["http"], as_whom)] if siege.by_http else []
    async with contextlib.AsyncExitStack() as present:
        for one in others:
            await present.enter_async_context(one)
        await asyncio.sleep(WARM_UP_S)
        yield lambda: together([one.sample() for one in others])
