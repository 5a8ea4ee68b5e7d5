"""Ending a session in two steps, so that a client that comes back meanwhile loses nothing.

First its record goes: a client that connects from then on begins anew, with consumers of other names. But in a cluster
the deletion and a client's return at the same moment may both succeed: then the record is there again, with the old
consumers. So these go a little later, and only where no record names them.
"""

from collections.abc import Iterator

import msgspec

from tidegate.brokers.nats.session_looks import Waiting
from tidegate.brokers.nats.session_records import (
    SessionRecord,
    delete_consumers,
    delete_record,
    filter_of,
    read_record,
)
from tidegate.brokers.sessions import Ending
from tidegate.bus.wire import Wire

SETTLE_S = 1.0


class _Begun(msgspec.Struct, frozen=True, kw_only=True):
    ending: Ending
    record: SessionRecord | None
    held: tuple[Waiting, ...]
    since_s: float

    @property
    def consumers(self) -> set[str]:
        return {one.consumer for one in self.held} | set(() if self.record is None else self.record.consumers)

    def sentence(self) -> str:
        """Whose it was, and what it kept."""
        client = "an unknown client" if self.record is None else f"client {self.record.client!r:.120}"
        most = max(self.held, key=lambda one: one.messages, default=None)
        what = "" if most is None else f" (subscription {filter_of(most.subjects)!r:.120})"
        return f"that of {client}{what}, which kept {self.ending.kept} (setting {self.ending.setting})"


class Endings:
    """``begin`` for each session that has to go; ``finish`` again and again."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._begun: dict[str, _Begun] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._begun

    def begin(self, ending: Ending, record: SessionRecord | None, held: list[Waiting], clock_s: float) -> None:
        """The client has to be absent; ``record`` is what was read before that was found out."""
        if record is None or delete_record(self._wire, record):
            begun = _Begun(ending=ending, record=record, held=tuple(held), since_s=clock_s)
            self._begun[ending.session.name] = begun

    def finish(self, clock_s: float) -> Iterator[str]:
        """A sentence for each session that is gone now."""
        for name, begun in list(self._begun.items()):
            if clock_s - begun.since_s >= SETTLE_S:
                is_gone = self._finish(name, begun)
                del self._begun[name]
                if is_gone:
                    yield begun.sentence()

    def _finish(self, name: str, begun: _Begun) -> bool:
        now = read_record(self._wire, name)
        if now is not None and (not begun.consumers or not begun.consumers.isdisjoint(now.consumers)):
            return False  # its client came back in time
        had = "" if begun.record is None else begun.record.releasing
        delete_consumers(self._wire, begun.consumers, had if now is None else "")
        return True
