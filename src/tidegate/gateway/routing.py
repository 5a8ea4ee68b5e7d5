"""Which broker a client is given to: where it was before, else by the weights. Nothing here waits or dials.

A change of routes concerns new connections only. All processes of a gateway count and remember together: a client comes
back to its broker whichever process it meets, and the connections of all follow the weights.
"""

import random
import time
from collections.abc import Callable, Collection

import msgspec

from tidegate.control.placement.weighted import choose, may_take
from tidegate.gateway.shared import layout
from tidegate.gateway.shared.brokers import key_of
from tidegate.gateway.shared.directory import DIGEST_BYTES, NOBODY, Known
from tidegate.gateway.shared.memory import Shared
from tidegate.model.routes import Broker, Routes

_BY_HTTP = "\0http "  # no client can have such an identifier


class Router:
    def __init__(
        self,
        routes: Routes,
        shared: Shared,
        ties: random.Random,
        *,
        slot: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.routes = routes
        self._process = shared.rows[slot].cells[layout.PROCESS]
        self._directory = shared.directory
        self._shared = shared
        self._loads = shared.brokers(slot)
        self._ties = ties
        self._clock = clock

    @property
    def connections(self) -> dict[str, int]:
        """Of all processes, per broker, those being dialled included."""
        return self._loads.total()

    def take(self, known: Known | None, excluded: Collection[str] = ()) -> Broker | None:
        """A broker for a client, as far as it is known; counted until ``give_back``. None where none is left to try."""
        chosen = self._last(known, excluded)
        if chosen is None:
            chosen = choose(self.routes.brokers, self._loads.total(), ties=self._ties, excluded=excluded)
        if chosen is not None:
            self._loads.change(chosen.name, 1)
        return chosen

    def give_back(self, broker: Broker) -> None:
        self._loads.change(broker.name, -1)

    def accepted(self, client: bytes, broker: Broker, owner: bytes = bytes(DIGEST_BYTES)) -> None:
        """The broker took the client on, which is named by its digest. One without an identifier has no session to come
        back to.

        Only an accepted connection is remembered: a client that a broker refused would else be sent to it for ever.
        """
        if client:
            self._directory.arrive(
                client, process=self._process, broker=key_of(broker.name), credentials=owner, now_s=self._clock()
            )

    def left(self, client: bytes, credits_left: tuple[float, float, float] | None, now_s: float) -> None:
        """The client's last connection on this process has ended."""
        if client:
            self._directory.leave(client, process=self._process, credits_left=credits_left, now_s=now_s)

    def claim(self, device: str) -> bool:
        """Whether no other process counts a device that came by HTTP; this one does from now on."""
        others = {row.cells[layout.PROCESS] for row in self._shared.rows} - {0, self._process}

        def claimed(known: Known | None) -> Known | None:
            if known is not None and known.process in others:
                return None
            return msgspec.structs.replace(known or NOBODY, process=self._process, seen_at_s=self._clock())

        found = self.account(device, claimed)
        return found is not None and found.process == self._process

    def release(self, device: str) -> None:
        """This process counts it no more."""
        self._directory.release(self._directory.digest(f"{_BY_HTTP}{device}"), process=self._process)

    def account(self, name: str, change: Callable[[Known | None], Known | None]) -> Known | None:
        """What is known of somebody who comes by HTTP, changed in one go."""
        return self._directory.settle(self._directory.digest(f"{_BY_HTTP}{name}"), change)

    def claim_absent(self, client: bytes, since_s: float) -> bool:
        """Whether nobody has seen a client since then; if so, whoever meets it has to ask this process first."""
        return self._directory.claim(client, process=self._process, since_s=since_s)

    def release_absent(self, client: bytes) -> None:
        self._directory.release(client, process=self._process)

    def digest(self, client_id: str) -> bytes:
        """What stands for a client between the processes."""
        return self._directory.digest(client_id)

    def known(self, client: bytes) -> Known | None:
        """What any process knows of a client, by its digest; nothing of one without an identifier."""
        return self._directory.find(client) if client else None

    def _last(self, known: Known | None, excluded: Collection[str]) -> Broker | None:
        if known is None:
            return None
        usable = (broker for broker in self.routes.brokers if may_take(broker) and broker.name not in excluded)
        return next((broker for broker in usable if key_of(broker.name) == known.broker), None)
