"""Which broker takes the next client: shares of connections that follow the brokers' weights, without any memory.

The next client goes to the broker with the lowest ::

    (connections + 1) / weight

that is, to the one that would be the least loaded for its weight after taking it. Counted from empty brokers, after n
clients each has at least the whole part of its share of n, whatever the weights are, and the sequence is smooth: a
broker of weight 2 is not filled twice in a row while one of weight 1 waits. Counting what is connected rather than
what was given out means that a broker which lost its clients, or is new, catches up first.
"""

import random
from collections.abc import Collection, Mapping, Sequence

from tidegate.model.routes import Broker


def may_take(broker: Broker) -> bool:
    return broker.healthy and broker.weight > 0


def choose(
    brokers: Sequence[Broker],
    connections: Mapping[str, int],
    *,
    ties: random.Random,
    excluded: Collection[str] = (),
) -> Broker | None:
    """The broker for the next client, or None where none may take one. Equals are told apart by ``ties``."""
    candidates = [broker for broker in brokers if may_take(broker) and broker.name not in excluded]
    if not candidates:
        return None
    loads = [(connections.get(broker.name, 0) + 1) / broker.weight for broker in candidates]
    least = min(loads)
    return ties.choice([broker for broker, load in zip(candidates, loads, strict=True) if load == least])
