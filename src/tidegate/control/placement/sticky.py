"""Where a client was last accepted, so that it comes back to the broker that knows its session.

Only an accepted connection is remembered: a client that a broker refused would else be sent to it for ever. The memory
is bounded: the client that was not seen for the longest time is forgotten first.
"""

from collections.abc import Collection


class Sticky:
    def __init__(self, clients_max: int) -> None:
        self._clients_max = clients_max
        self._brokers: dict[str, str] = {}  # oldest first

    def __len__(self) -> int:
        return len(self._brokers)

    def remember(self, client_id: str, broker: str) -> None:
        """The broker accepted the client. A client without an identifier has no session to come back to."""
        if not client_id:
            return
        self._brokers.pop(client_id, None)
        self._brokers[client_id] = broker
        if len(self._brokers) > self._clients_max:
            del self._brokers[next(iter(self._brokers))]

    def recall(self, client_id: str, usable: Collection[str]) -> str | None:
        """The client's broker. One that may take nobody any more is forgotten."""
        broker = self._brokers.get(client_id)
        if broker is not None and broker not in usable:
            del self._brokers[client_id]
            return None
        return broker
