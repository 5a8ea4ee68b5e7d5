"""How many connections all processes of a gateway have to each broker. Brokers come and go by name; places are kept."""

import hashlib
from collections.abc import Sequence
from functools import lru_cache

from tidegate.gateway.shared import layout
from tidegate.gateway.shared.locks import ByteLock
from tidegate.gateway.shared.row import Row

KEY_BYTES = 8
OTHERS = "others"
_NAME_BYTES_MAX = layout.BROKER_BYTES - KEY_BYTES


@lru_cache(layout.BROKERS_MAX)
def key_of(name: str) -> bytes:
    """What stands for a broker where its name would take too much room."""
    return hashlib.blake2b(name.encode(), digest_size=KEY_BYTES).digest()


class BrokerLoads:
    """``own`` is the row of the process that counts here; who only reads has none."""

    def __init__(self, table: memoryview, lock: ByteLock, rows: Sequence[Row], own: Row) -> None:
        self._table = table
        self._lock = lock
        self._rows = rows
        self._own = own
        self._places: dict[str, int] = {}
        self._names: list[tuple[bytes, str]] = []  # as far as the table was read; places are never given anew

    def change(self, name: str, by: int) -> None:
        place = self._places.get(name)
        if place is None:
            place = self._places[name] = self._place(name)
        self._own.cells[layout.BROKER_CONNECTIONS + place] += by

    def total(self) -> dict[str, int]:
        """The connections of all processes, by broker; those without any are left out."""
        self._read()
        found = {}
        for place, (_, name) in enumerate(self._names, start=layout.BROKER_CONNECTIONS):
            count = sum(row.cells[place] for row in self._rows)
            if count:
                found[name] = count
        return found

    def _place(self, name: str) -> int:
        key = key_of(name)
        with self._lock:
            self._read()
            for place, (known, _) in enumerate(self._names):
                if known == key:
                    return place
            place = len(self._names)
            if place == layout.BROKERS_MAX - 1:
                key, name = key_of(OTHERS), OTHERS
            elif place == layout.BROKERS_MAX:
                return place - 1
            at = place * layout.BROKER_BYTES
            text = name.encode()[:_NAME_BYTES_MAX]
            self._table[at + KEY_BYTES : at + layout.BROKER_BYTES] = text.ljust(_NAME_BYTES_MAX, b"\0")
            self._table[at : at + KEY_BYTES] = key  # last: now it is there
            self._read()
        return place

    def _read(self) -> None:
        for place in range(len(self._names), layout.BROKERS_MAX):
            at = place * layout.BROKER_BYTES
            key = bytes(self._table[at : at + KEY_BYTES])
            if not any(key):
                return
            text = bytes(self._table[at + KEY_BYTES : at + layout.BROKER_BYTES])
            self._names.append((key, text.rstrip(b"\0").decode(errors="ignore")))
