"""How many processing nodes are worth their price, and whether more of them help at all.

For n nodes, each taking r messages a second, what cannot be taken of a demand D is withheld on the devices. Of all n
between minimum and maximum the cheapest is wanted::

    cost(n) = price_node_s * n + price_withheld * max(0, D - C(n)),     C(n) = min(n * r * utilisation, ceiling)

So the last node is started only if the messages it would save are worth more than it costs, and nobody is held for
longer than that: the rest of the policy holds devices for what the nodes that work *now* cannot take, and releases
them as nodes arrive.

*Ceiling*. Nodes may share a bottleneck. When nodes were added and, with all of them at their limit, the whole takes
less than ``HELPS_SHARE`` of what the added ones should have brought, that whole is the ceiling: more nodes would not
help, and those that do not are given back. The ceiling is forgotten after ``ceiling_s``, because bottlenecks go; what
smaller numbers took is compared for ``COMPARED_S`` only, because nodes that got slower meanwhile share no bottleneck.

*Ahead of time*. A node that is asked for now works ``start_s`` later. So D is the demand of then: where it has been
growing over the last ``TREND_S``, it is taken to go on growing as fast. A demand that falls is believed when it has.

*Up at once, down late*: nodes go only when fewer would have sufficed for ``down_after_s`` without a break.
"""

from collections.abc import Sequence
from typing import Annotated

import msgspec

HELPS_SHARE = 0.3
COMPARED_S = 120.0
KNOWN_S = 900.0
TREND_S = 10.0
# Evidence that a ceiling needs: the nodes worked nearly all the time.
AT_LIMIT_SHARE = 0.9

Price = Annotated[float, msgspec.Meta(ge=0)]


class ProvisioningSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``nodes_max`` at ``nodes_min`` leaves the number of nodes alone."""

    nodes_min: Annotated[int, msgspec.Meta(ge=1)] = 1
    nodes_max: Annotated[int, msgspec.Meta(ge=1)] = 1
    price_node_s: Price = 0.5  # of one node for a second
    price_withheld: Price = 1.0  # of one message that a device could not send
    utilisation: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.85
    start_s: Annotated[float, msgspec.Meta(ge=0)] = 10.0  # from asking for a node to its first message
    down_after_s: Annotated[float, msgspec.Meta(ge=0)] = 3.0
    ceiling_s: Annotated[float, msgspec.Meta(ge=0)] = 120.0


class Taken(msgspec.Struct, frozen=True, array_like=True):
    """What so many nodes took together at their limit, and when that was seen."""

    node_count: int
    per_s: float
    at_s: float


class Provisioned(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about numbers of nodes."""

    wanted: int | None = None
    lower_since_s: float | None = None
    taken: tuple[Taken, ...] = ()
    ceiling_per_s: float | None = None
    ceiling_at_s: float = 0.0
    demands: tuple[tuple[float, float], ...] = ()  # of the last TREND_S: when, messages per second


def provision(
    state: Provisioned,
    settings: ProvisioningSettings,
    *,
    at_s: float,
    demand_per_s: float,
    node_rate_per_s: float | None,
    node_count: int,
    starting: int,
    busy_share: float,
) -> Provisioned:
    """The number of nodes that is wanted from now on."""
    recent = tuple(point for point in state.demands if at_s - TREND_S <= point[0] < at_s)
    state = msgspec.structs.replace(state, demands=(*recent, (at_s, demand_per_s)))
    if node_rate_per_s is None or node_count < 1:
        return state if node_count + starting >= settings.nodes_min else _at_least(state, settings.nodes_min)
    state = _without_old_ceiling(state, settings, at_s)
    if busy_share >= AT_LIMIT_SHARE:
        state = _compared(state, Taken(node_count, node_rate_per_s * node_count, at_s))
    running = state.wanted if state.wanted is not None else node_count + starting
    expected_per_s = demand_per_s + max(0.0, _trend(state.demands)) * settings.start_s
    best = _cheapest(settings, expected_per_s, _alone(state, node_rate_per_s), state.ceiling_per_s)
    if best >= running:
        return msgspec.structs.replace(state, wanted=best, lower_since_s=None)
    since_s = at_s if state.lower_since_s is None else min(at_s, state.lower_since_s)
    if at_s - since_s < settings.down_after_s:
        return msgspec.structs.replace(state, wanted=running, lower_since_s=since_s)
    return msgspec.structs.replace(state, wanted=best, lower_since_s=None)


def _trend(demands: tuple[tuple[float, float], ...]) -> float:
    """How much more is wanted each second, over the recent past; 0 where that is too short to say."""
    (from_s, first), (to_s, last) = demands[0], demands[-1]
    return (last - first) / (to_s - from_s) if to_s - from_s >= TREND_S / 3 else 0.0


def together_per_s(state: Provisioned, node_count: int, node_rate_per_s: float) -> float:
    """What so many nodes take together, under the ceiling where there is one."""
    taken = node_count * _alone(state, node_rate_per_s)
    return taken if state.ceiling_per_s is None else min(taken, state.ceiling_per_s)


def _alone(state: Provisioned, node_rate_per_s: float) -> float:
    """What one node takes where it does not wait for the others: under a ceiling, the best that any number showed."""
    if state.ceiling_per_s is None:
        return node_rate_per_s
    return max([node_rate_per_s, *(one.per_s / one.node_count for one in state.taken)])


def _cheapest(
    settings: ProvisioningSettings, demand_per_s: float, node_rate_per_s: float, ceiling_per_s: float | None
) -> int:
    def cost(node_count: int) -> float:
        taken = node_count * node_rate_per_s * settings.utilisation
        taken = taken if ceiling_per_s is None else min(taken, ceiling_per_s)
        return settings.price_node_s * node_count + settings.price_withheld * max(0.0, demand_per_s - taken)

    numbers: Sequence[int] = range(settings.nodes_min, max(settings.nodes_min, settings.nodes_max) + 1)
    return min(numbers, key=lambda number: (round(cost(number), 9), number))


def _without_old_ceiling(state: Provisioned, settings: ProvisioningSettings, at_s: float) -> Provisioned:
    if state.ceiling_per_s is None or at_s - state.ceiling_at_s < settings.ceiling_s:
        return state
    return msgspec.structs.replace(state, ceiling_per_s=None)


def _at_least(state: Provisioned, node_count: int) -> Provisioned:
    return msgspec.structs.replace(state, wanted=max(node_count, state.wanted or 0))


def _compared(state: Provisioned, taken: Taken) -> Provisioned:
    """Note what was taken at the limit; a number of nodes that takes hardly more than a smaller one has a ceiling."""
    others = tuple(
        one for one in state.taken if one.node_count != taken.node_count and taken.at_s - one.at_s <= KNOWN_S
    )
    state = msgspec.structs.replace(state, taken=(*others, taken))
    fewer = [one for one in others if one.node_count < taken.node_count and taken.at_s - one.at_s <= COMPARED_S]
    if not fewer:
        return state
    base = max(fewer, key=lambda one: one.node_count)
    added_per_s = base.per_s / base.node_count * (taken.node_count - base.node_count)
    if taken.per_s >= base.per_s + HELPS_SHARE * added_per_s:
        return state
    return msgspec.structs.replace(state, ceiling_per_s=max(taken.per_s, base.per_s), ceiling_at_s=taken.at_s)
