"""The families of resources, and what is peculiar to each."""

from collections.abc import Iterable, Mapping
from typing import cast

from tidegate.loop.in_force import Family, Values
from tidegate.loop.knowledge import CHAIN, Knowledge, Standing
from tidegate.model.actions import Action, Advise, MoveSlices, Reconfigure, Route, ScaleNodes
from tidegate.model.advice import INTERVAL_S_MAX, Advice
from tidegate.model.effects import Effect
from tidegate.model.intents import EVERYBODY, Algorithm, Count, Listener, Owner, Pace
from tidegate.model.routes import Broker, Routes

SAME_SHARE = 0.02
# A device hears the next advice with its next message: a lease that is shorter than its interval lapses in between.
LIFETIME_INTERVALS = 3.0
# An effect is looked for where devices that follow would send less by this share, and it has shown when this share of
# that has: half of the devices may be deaf, and others may want more than before.
FELT_SHARE = 0.3
SHOWN_SHARE = 0.2
FOLLOWED_SHARE = 1.1  # of what is asked: what comes from devices that follow is no more
HEARD_INTERVALS, HEARD_S = 3.0, 15.0
NODES_S = 180.0  # a node starts a JVM, and may have to catch up with a table first
SLICES_S = 60.0


class SendRates:
    """A change of an interval by less than 2 % is none."""

    name = "send-rate"
    lapses = True

    def actual(self, knowledge: Knowledge) -> Values:
        return knowledge.kept_to(self.name)

    def is_same(self, before: Values, after: Values) -> bool:
        was, wanted = paces(before), paces(after)
        return all(
            _is_near(interval_of(was, name), interval_of(wanted, name))
            and _is_near(dead_band_of(was, name), dead_band_of(wanted, name))
            for name in was.keys() | wanted.keys() | {EVERYBODY}
        )

    def lifetime_s(self, wanted: Values, before: Standing, lifetime_s: float, now_s: float) -> float:
        longest_s = max(pace.interval_s or 0.0 for pace in (Pace(), *paces(wanted).values()))
        lifetime_s = max(lifetime_s, LIFETIME_INTERVALS * longest_s)
        if self.is_withdrawal(wanted):
            # Somebody may have heard the longest advice of all just before it was shortened, and will not ask sooner.
            lifetime_s = max(lifetime_s, before.until_s - now_s)
        return min(lifetime_s, INTERVAL_S_MAX)

    def is_withdrawal(self, values: Values) -> bool:
        return not any(pace.holds for pace in paces(values).values())

    def effect(self, wanted: Values, knowledge: Knowledge) -> Effect | None:
        """Devices that hear advice send less each. Where many are deaf, or few have to change, less of that shows."""
        now = knowledge.chain.get("device_rate_per_s")
        if not now:
            return None
        followed = _followed(paces(wanted), knowledge)
        if followed is None:
            return None
        fall = now - followed / knowledge.chain["devices"]
        if fall < FELT_SHARE * now:
            return None
        hearing_s = HEARD_INTERVALS * max(1.0 / now, interval_of(paces(self.actual(knowledge)), EVERYBODY))
        below = now - SHOWN_SHARE * fall
        return Effect(source=CHAIN, quantity="device_rate_per_s", below=below, within_s=hearing_s + HEARD_S)

    def is_followed(self, values: Values, knowledge: Knowledge) -> bool:
        """Whether devices send about as much as they are asked to, or less."""
        chain = knowledge.chain
        if not chain.get("devices") or "arrival_per_s" not in chain:
            return False
        followed = _followed(paces(values), knowledge)
        return followed is not None and chain["arrival_per_s"] <= FOLLOWED_SHARE * followed

    def is_stronger(self, wanted: Values, instead: Values, expected: Effect) -> bool:  # noqa: ARG002
        said, less = paces(wanted), paces(instead)
        return any(interval_of(said, name) > interval_of(less, name) for name in (*said, EVERYBODY))

    def action(self, standing: Standing) -> Advise:
        said = paces(standing.values)
        return Advise(
            advice=Advice(
                interval_s=interval_of(said, EVERYBODY),
                lifetime_s=standing.lifetime_s,
                half_life_s=standing.half_life_s,
                share=standing.share,
                classes={
                    name: pace.interval_s
                    for name, pace in said.items()
                    if name != EVERYBODY and pace.interval_s is not None
                },
                dead_bands={name: pace.dead_band for name, pace in said.items() if pace.dead_band > 1},
            )
        )


class _Lasting:
    """What holds until something else is said; nothing is expected to show of it."""

    lapses = False

    def lifetime_s(self, wanted: Values, before: Standing, lifetime_s: float, now_s: float) -> float:  # noqa: ARG002
        return lifetime_s

    def is_withdrawal(self, values: Values) -> bool:
        return not values

    def effect(self, wanted: Values, knowledge: Knowledge) -> Effect | None:  # noqa: ARG002
        return None

    def is_followed(self, values: Values, knowledge: Knowledge) -> bool:  # noqa: ARG002
        return False

    def is_stronger(self, wanted: Values, instead: Values, expected: Effect) -> bool:  # noqa: ARG002
        return False


class Nodes(_Lasting):
    name = "nodes"

    def actual(self, knowledge: Knowledge) -> Values:
        chain = knowledge.chain
        return {"": Count(nodes=round(chain.get("nodes_working", 0.0) + chain.get("nodes_starting", 0.0)))}

    def is_same(self, before: Values, after: Values) -> bool:
        return before == after

    def effect(self, wanted: Values, knowledge: Knowledge) -> Effect | None:
        count, working = _count(wanted), knowledge.chain.get("nodes_working", 0.0)
        if count > working:
            return Effect(source=CHAIN, quantity="nodes_working", above=count, within_s=NODES_S)
        if count < working:
            return Effect(source=CHAIN, quantity="nodes_working", below=count, within_s=NODES_S)
        return None

    def is_stronger(self, wanted: Values, instead: Values, expected: Effect) -> bool:
        if not wanted:
            return False
        more = _count(wanted) - _count(instead)
        return more > 0 if expected.above is not None else more < 0

    def action(self, standing: Standing) -> ScaleNodes:
        return ScaleNodes(nodes_wanted=cast("Count", standing.values[""]).nodes)


class Slices(_Lasting):
    """What is said are moves; those that have arrived, or were refused, are not wanted any more."""

    name = "slice"

    def actual(self, knowledge: Knowledge) -> Values:
        return {str(number): Owner(node=node.name) for node in knowledge.nodes for number in node.slices}

    def is_same(self, before: Values, after: Values) -> bool:
        return after.items() <= before.items()

    def effect(self, wanted: Values, knowledge: Knowledge) -> Effect | None:
        """That all slices of its taker have come which stand for all: the one that gets most."""
        actual = self.actual(knowledge)
        takers = [cast("Owner", owner).node for name, owner in wanted.items() if actual.get(name) != owner]
        if not takers:
            return None
        most = max(set(takers), key=lambda name: (takers.count(name), name))
        stay = [name for name, owner in actual.items() if owner == Owner(node=most) == wanted.get(name, owner)]
        return Effect(source=f"node/{most}", quantity="slices", above=len(stay) + takers.count(most), within_s=SLICES_S)

    def is_stronger(self, wanted: Values, instead: Values, expected: Effect) -> bool:  # noqa: ARG002
        return any(name in instead and wanted[name] != instead[name] for name in wanted)

    def action(self, standing: Standing) -> MoveSlices:
        moves = cast("dict[str, Owner]", standing.values)
        return MoveSlices(takers={int(number): owner.node for number, owner in moves.items()})


class RouteTable(_Lasting):
    """Only what is observed of a broker counts as a change; the rest of a route is what people chose."""

    name = "route"

    def actual(self, knowledge: Knowledge) -> Values:
        brokers = knowledge.routes.brokers if knowledge.routes is not None else ()
        return {broker.name: Listener(broker=broker) for broker in brokers}

    def is_same(self, before: Values, after: Values) -> bool:
        return _observed(before) == _observed(after)

    def action(self, standing: Standing) -> Route:
        return Route(routes=Routes(brokers=tuple(_brokers(standing.values))))


class Algorithms(_Lasting):
    """Only rules want something of it; what they leave behind lasts until something else is wanted."""

    name = "policy"

    def actual(self, knowledge: Knowledge) -> Values:
        return {SendRates.name: Algorithm(), **knowledge.kept_to(self.name)}

    def is_same(self, before: Values, after: Values) -> bool:
        return after.items() <= {SendRates.name: Algorithm(), **before}.items()

    def action(self, standing: Standing) -> Reconfigure:
        return Reconfigure(policies=algorithms(standing.values))


FAMILIES: dict[str, Family] = {
    family.name: family for family in (SendRates(), Nodes(), Slices(), RouteTable(), Algorithms())
}


def family_of(action: Action) -> str:
    match action:
        case Advise():
            return SendRates.name
        case ScaleNodes():
            return Nodes.name
        case MoveSlices():
            return Slices.name
        case Route():
            return RouteTable.name
        case Reconfigure():
            return Algorithms.name


def actual_values(knowledge: Knowledge, wanted: Iterable[str] = ()) -> Values:
    """What is so now and may be gone back to, by resource, as far as it is known. Of classes among those that are
    ``wanted`` it always is: who was told nothing of their own keep to what everybody does."""
    found = {
        f"{name}/{member}" if member else name: value
        for name, family in FAMILIES.items()
        for member, value in returned_to(family, knowledge).items()
    }
    unnamed = {name: Pace() for name in wanted if name.partition("/")[0] == SendRates.name}
    return {**unnamed, f"{SendRates.name}/{EVERYBODY}": Pace(interval_s=0.0), **found}


def returned_to(family: Family, knowledge: Knowledge) -> Values:
    """What is so now, where that may be gone back to: nobody wants to go back to no node at all."""
    actual = family.actual(knowledge)
    return {"": Count(nodes=max(1, _count(actual)))} if family.name == Nodes.name else actual


def paces(values: Values) -> dict[str, Pace]:
    return cast("dict[str, Pace]", values)


def algorithms(values: Values) -> dict[str, Algorithm]:
    return cast("dict[str, Algorithm]", values)


def interval_of(said: Mapping[str, Pace], name: str) -> float:
    """What devices of a class keep to: their own interval, or everybody's."""
    own = said[name].interval_s if name in said else None
    if own is None:
        own = said[EVERYBODY].interval_s if EVERYBODY in said else None
    return own or 0.0


def dead_band_of(said: Mapping[str, Pace], name: str) -> float:
    return said[name].dead_band if name in said else 1.0


def _followed(said: Mapping[str, Pace], knowledge: Knowledge) -> float | None:
    """What would arrive if everybody followed, None where it is not known what a class sends; of a dead band nobody
    knows what it brings."""
    devices, arrival_per_s, followed = knowledge.chain["devices"], knowledge.chain["arrival_per_s"], 0.0
    for name, seen in knowledge.group("class").items():
        if not {"devices", "arrival_per_s"} <= seen.keys():
            return None
        followed += _at_most(seen["arrival_per_s"], seen["devices"], interval_of(said, name))
        devices, arrival_per_s = devices - seen["devices"], arrival_per_s - seen["arrival_per_s"]
    return followed + _at_most(max(0.0, arrival_per_s), max(0.0, devices), interval_of(said, EVERYBODY))


def _at_most(arrival_per_s: float, devices: float, interval_s: float) -> float:
    return min(arrival_per_s, devices / interval_s) if interval_s else arrival_per_s


def _count(values: Values) -> int:
    return cast("Count", values[""]).nodes


def _is_near(before: float, after: float) -> bool:
    if before == 0 or after == 0:
        return before == after
    return abs(after - before) < SAME_SHARE * before


def _brokers(values: Values) -> list[Broker]:
    return [cast("Listener", value).broker for value in values.values()]


def _observed(values: Values) -> list[tuple[str, str, int, bool]]:
    return [(one.name, one.host, one.port, one.healthy) for one in _brokers(values)]
