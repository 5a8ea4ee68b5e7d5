"""Acting on a cohort: a share of slices and brokers, always the same ones, and one node more or less at a time."""

import zlib

import msgspec

from tidegate.loop.families import RouteTable
from tidegate.loop.in_force import Values
from tidegate.loop.knowledge import Knowledge
from tidegate.loop.wishes import Wish, Withheld, not_done
from tidegate.model.intents import Count, Intent, Listener


def of_cohort(name: str, wish: Wish, knowledge: Knowledge, share: float, withheld: list[Withheld]) -> Wish:
    """Only the members that belong to the cohort; of the nodes one more or one less."""
    kept: dict[str, Intent] = {}
    for member, intent in wish.intents.items():
        if isinstance(intent.wanted, Count):
            running = round(sum(knowledge.chain.get(one, 0.0) for one in ("nodes_working", "nodes_starting")))
            count = min(max(intent.wanted.nodes, running - 1), running + 1)
            kept[member] = msgspec.structs.replace(intent, wanted=Count(nodes=count))
        elif zlib.crc32(member.encode()) / 2**32 < share:
            kept[member] = intent
        if member not in kept or kept[member].wanted != intent.wanted:
            done = kept[member].wanted if member in kept else None
            withheld.append(not_done(wish.by_of(member), intent, done, "mode", f"{name} acts on a cohort only"))
    return wish._replace(intents=kept)


def with_others(wish: Wish, actual: Values) -> Wish:
    """Brokers that do not belong to the cohort stay as they are; where none would be left to go to, all do."""
    kept = dict(wish.intents)
    first = next(iter(kept.values()), None)
    if first is None or not actual:
        return wish._replace(intents={})
    for member, value in actual.items():
        if member not in kept:
            kept[member] = msgspec.structs.replace(first, resource=f"{RouteTable.name}/{member}", wanted=value)
    usable = any(isinstance(one.wanted, Listener) and one.wanted.broker.healthy for one in kept.values())
    return wish._replace(intents={name: kept[name] for name in sorted(kept)} if usable else {})
