"""Rounds of calm and of attacks, each attack in one of them, while others publish all along. In calm the same attacks
go to a sink."""

from collections.abc import Sequence

import msgspec

from tidegate.report.progress import Progress
from tidegate_bench.hostile.attackers import command, recruit, sink
from tidegate_bench.hostile.attacking import AttackOrder, AttackResult
from tidegate_bench.hostile.attacks import attacks
from tidegate_bench.hostile.bystanders import Bystanders
from tidegate_bench.hostile.checks import Round
from tidegate_bench.hostile.gateways import Attacked

ROUNDS = 6


async def fight(attacked: Attacked, others: Bystanders, progress: Progress) -> tuple[list[Round], list[AttackResult]]:
    names = [attack.name for attack in attacks()]
    rounds, results = list[Round](), list[AttackResult]()
    async with sink() as calm:
        for number in range(ROUNDS):
            order = AttackOrder(
                listeners=attacked.listeners, state=str(attacked.state), names=tuple(names[number::ROUNDS])
            )
            progress.step(f"Round {number + 1} of {ROUNDS}: {', '.join(order.names)}.")
            found, ended = await _round(order, others, calm)
            rounds.append(found)
            results += ended
    return rounds, results


async def _round(order: AttackOrder, others: Bystanders, calm: tuple[str, int]) -> tuple[Round, Sequence[AttackResult]]:
    harmless = msgspec.structs.replace(order, listeners=dict.fromkeys(order.listeners, calm))
    attackers = [await recruit("attacking"), await recruit("attacking")]
    others.sample()
    await command(attackers[0], msgspec.json.encode(harmless))
    met_in_calm = others.sample()
    output = await command(attackers[1], msgspec.json.encode(order))
    met = others.sample()
    return Round(calm=met_in_calm, hostile=met), msgspec.json.decode(output, type=list[AttackResult])
