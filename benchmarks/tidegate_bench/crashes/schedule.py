"""Which faults a round has: a pure function of the seed and the round's number, so that a round can be played again."""

import random
from typing import Literal

import msgspec

NODES = ("node-1", "node-2")
BROKERS = ("broker-1", "broker-2", "broker-3")
PARTS_WITH_CLOCKS = (*NODES, "gateway-1", "controller-1", "maintainer-1")
# Longer than a node's lease, so that its slices are taken from it meanwhile.
FREEZE_S = 5.0
# Longer than a node may hang: it has to notice by itself.
HANG_S = 30.0
SECOND_SHARE = 0.6
# Of the second faults: those that make the table refuse a commit are rare by chance.
AIMED_SHARE = 0.5

Group = Literal["nodes", "brokers", "bus", "others", "disk", "clock", "stores"]


class Kind(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of fault. Of one ``group`` a round has one fault; of brokers and their stores together as well."""

    name: str
    group: Group
    victims: tuple[str, ...]
    seconds: tuple[float, ...] = (0.0,)  # how long it lasts, one of these


def _killed_and_frozen(
    what: str, group: Group, victims: tuple[str, ...], *, seconds: tuple[float, ...] = (FREEZE_S,)
) -> tuple[Kind, ...]:
    return (
        Kind(name=f"kill {what}", group=group, victims=victims),
        Kind(name=f"freeze {what}", group=group, victims=victims, seconds=seconds),
    )


FREEZE_BEFORE_COMMIT = Kind(name="freeze before commit", group="nodes", victims=NODES, seconds=(FREEZE_S,))
KINDS: tuple[Kind, ...] = (
    *_killed_and_frozen("driver", "nodes", NODES),
    *_killed_and_frozen("JVM", "nodes", NODES, seconds=(FREEZE_S, HANG_S)),
    *_killed_and_frozen("worker", "nodes", NODES, seconds=(FREEZE_S, HANG_S)),
    *_killed_and_frozen("planner", "nodes", NODES, seconds=(FREEZE_S, HANG_S)),
    *_killed_and_frozen("broker", "brokers", BROKERS),
    *_killed_and_frozen("all brokers", "brokers", ("all",)),
    *_killed_and_frozen("control bus", "bus", ("control",)),
    *_killed_and_frozen("gateway", "others", ("gateway-1",)),
    *_killed_and_frozen("controller", "others", ("controller-1",)),
    *_killed_and_frozen("maintainer", "others", ("maintainer-1",)),
    FREEZE_BEFORE_COMMIT,
    Kind(name="kill before commit", group="nodes", victims=NODES),
    Kind(name="kill giver", group="nodes", victims=("owner",)),
    Kind(name="freeze taker", group="nodes", victims=("owner",), seconds=(FREEZE_S,)),
    Kind(name="kill in compaction", group="others", victims=("maintainer-1",)),
    Kind(name="freeze in compaction", group="others", victims=("maintainer-1",), seconds=(FREEZE_S,)),
    Kind(name="disk full", group="disk", victims=("tables",), seconds=(10.0, 20.0)),
    Kind(name="set all stores back", group="stores", victims=("all",), seconds=(3.0, 6.0)),
    Kind(name="set a store back", group="stores", victims=BROKERS, seconds=(3.0, 6.0)),
    Kind(name="flip a bit", group="stores", victims=BROKERS),
    Kind(name="remove a broker", group="stores", victims=BROKERS, seconds=(2.0, 5.0)),
    Kind(name="lose the bus's store", group="bus", victims=("control",)),
    Kind(name="clock ahead", group="clock", victims=PARTS_WITH_CLOCKS, seconds=(8.0, 15.0)),
    Kind(name="clock behind", group="clock", victims=PARTS_WITH_CLOCKS, seconds=(8.0, 15.0)),
)
BY_NAME = {kind.name: kind for kind in KINDS}


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """What is done to whom, when (after the round began) and for how long; ``draw`` settles what else is random."""

    kind: str
    victim: str
    at_s: float
    seconds: float
    draw: int


class Move(msgspec.Struct, frozen=True, kw_only=True):
    """A slice that is asked to move to the node that does not have it."""

    slice: int
    at_s: float


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    faults: tuple[Fault, ...]
    moves: tuple[Move, ...]


def plan_of(seed: int, number: int, slices: int) -> Plan:
    """The first fault comes from a shuffled deck of all kinds, so that each has its turn; the second from what fits."""
    deck, place = divmod(number, len(KINDS))
    order = list(KINDS)
    random.Random(f"{seed}/deck/{deck}").shuffle(order)  # noqa: S311 - a seeded schedule
    chance = random.Random(f"{seed}/round/{number}")  # noqa: S311
    first = order[place]
    faults = [_fault(first, chance)]
    if chance.random() < SECOND_SHARE:
        faults.append(_fault(_second(first, chance), chance))
    moves = [
        Move(slice=chance.randrange(slices), at_s=round(chance.uniform(0.5, 8.0), 3))
        for _ in range(chance.randrange(1, 3))
    ]
    return Plan(faults=tuple(faults), moves=tuple(sorted(moves, key=lambda move: move.at_s)))


def _second(first: Kind, chance: random.Random) -> Kind:
    if chance.random() < AIMED_SHARE and fit(first, FREEZE_BEFORE_COMMIT):
        return FREEZE_BEFORE_COMMIT
    return chance.choice([kind for kind in KINDS if fit(first, kind)])


def fit(one: Kind, other: Kind) -> bool:
    """Two faults of one group meet in one victim; and what is lost of one store must be in two that work."""
    if one.group == other.group:
        return False
    return {one.group, other.group} != {"brokers", "stores"}


def _fault(kind: Kind, chance: random.Random) -> Fault:
    return Fault(
        kind=kind.name,
        victim=chance.choice(kind.victims),
        at_s=round(chance.uniform(1.0, 6.0), 3),
        seconds=chance.choice(kind.seconds),
        draw=chance.randrange(1 << 30),
    )
