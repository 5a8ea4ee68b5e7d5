"""One process's part of the shared memory: its cells, and what it says about the clients that it holds.

Only that process writes here, until it is gone. What it says is written beside what it said before, and only then
becomes what is read: a reader never waits, and never sees half a sentence unless it takes longer than a second.
"""

from collections.abc import Mapping, Sequence

import msgspec

from tidegate.gateway.shared import layout
from tidegate.model.observations import HeldClient

MOST_HELD_MAX = 10
_TEXT_MAX = 64  # characters of a client's identifier that are told: it may have 65,535
_SIZE_BYTES = 4


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """The clients that a process holds: those that have waited longest, and how many there are by reason."""

    most: tuple[HeldClient, ...] = ()
    clients: dict[str, int] = {}


NOBODY = Held()


class Row:
    """``cells`` are 64-bit integers; ``layout`` names them."""

    def __init__(self, memory: memoryview) -> None:
        cells_bytes = layout.CELLS * layout.CELL_BYTES
        self.cells = memory[:cells_bytes].cast("q")
        self._told = memory[layout.ROW_BYTES - 2 * layout.TOLD_BYTES :]

    def tell_held(self, most: Sequence[HeldClient], clients: Mapping[str, int] | None = None) -> None:
        """At most ten clients are told, those that have waited longest, and fewer where the room is too small."""
        longest = sorted(most, key=lambda client: -client.waiting_s)[:MOST_HELD_MAX]
        short = [msgspec.structs.replace(client, client_id=_short(client.client_id)) for client in longest]
        counts = dict(clients or {})
        text = msgspec.json.encode(Held(most=tuple(short), clients=counts))
        while len(text) > layout.TOLD_BYTES - _SIZE_BYTES:
            if short:
                short.pop()
            else:
                counts.popitem()
            text = msgspec.json.encode(Held(most=tuple(short), clients=counts))
        place = (1 - self.cells[layout.TOLD]) * layout.TOLD_BYTES
        self._told[place : place + _SIZE_BYTES] = len(text).to_bytes(_SIZE_BYTES, "little")
        self._told[place + _SIZE_BYTES : place + _SIZE_BYTES + len(text)] = text
        self.cells[layout.TOLD] = 1 - self.cells[layout.TOLD]

    def held(self) -> Held:
        place = self.cells[layout.TOLD] * layout.TOLD_BYTES
        size = int.from_bytes(self._told[place : place + _SIZE_BYTES], "little")
        if not size:
            return NOBODY
        try:
            return msgspec.json.decode(bytes(self._told[place + _SIZE_BYTES : place + _SIZE_BYTES + size]), type=Held)
        except msgspec.DecodeError:
            return NOBODY

    def clear(self) -> None:
        """For the next process; only when nobody writes here any more."""
        for place in range(layout.CELLS):
            self.cells[place] = 0
        self._told[:] = bytes(2 * layout.TOLD_BYTES)


def _short(client_id: str) -> str:
    return client_id if len(client_id) <= _TEXT_MAX else client_id[: _TEXT_MAX - 1] + "…"
