"""Which broker a client is given to: where it was before, else by the weights. Nothing here waits or dials.

A change of routes concerns new connections only.
"""

import random
from collections import Counter
from collections.abc import Collection

from tidegate.control.placement.sticky import Sticky
from tidegate.control.placement.weighted import choose, may_take
from tidegate.model.routes import Broker, Routes


class Router:
    def __init__(self, routes: Routes, sticky: Sticky, ties: random.Random) -> None:
        self.routes = routes
        self.connections: Counter[str] = Counter()  # per broker, those being dialled included
        self._sticky = sticky
        self._ties = ties

    def take(self, client_id: str, excluded: Collection[str] = ()) -> Broker | None:
        """A broker for this client, counted until ``give_back``; None where none is left to try."""
        usable = {broker.name: broker for broker in self.routes.brokers if may_take(broker)}
        known = self._sticky.recall(client_id, usable)
        if known is not None and known not in excluded:
            chosen: Broker | None = usable[known]
        else:
            chosen = choose(self.routes.brokers, self.connections, ties=self._ties, excluded=excluded)
        if chosen is not None:
            self.connections[chosen.name] += 1
        return chosen

    def give_back(self, broker: Broker) -> None:
        self.connections[broker.name] -= 1
        if not self.connections[broker.name]:
            del self.connections[broker.name]

    def accepted(self, client_id: str, broker: Broker) -> None:
        self._sticky.remember(client_id, broker.name)
