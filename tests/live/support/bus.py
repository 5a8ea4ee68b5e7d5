"""The control bus as tests use it: documents that they write, read and take away again."""

from typing import Any, TypeVar

from tidegate.bus import key_value
from tidegate.bus.assignments import Assignments
from tidegate.bus.audit import AuditLog
from tidegate.bus.client import Bus
from tidegate.bus.documents import GATEWAYS, JOURNALS, Document, named
from tidegate.bus.jetstream import ask
from tidegate.model.installation import Installation
from tidegate.model.observations import GatewayState

Value = TypeVar("Value")
LEASE_S = 3600.0  # longer than any test


class ControlBus(Bus):
    """A connection of the test's own, and what is kept behind it."""

    def __init__(self, here: Installation, *, timeout_s: float = 5.0) -> None:
        super().__init__(here.control_urls, timeout_s=timeout_s)
        self.assignments = Assignments(self, here.slices)
        self.audit = AuditLog(self)

    def revision(self, document: Document[Any]) -> int:
        stored = self.stored(document)
        return stored.revision if stored is not None else 0

    def put_raw(self, key: str, content: bytes) -> None:
        """Whatever a test wants to be found there."""
        self._ask(key_value.to_put(key, content, revision=None, lease_s=None))

    def documents(self) -> set[str]:
        """The entries of the catalogue that are on the bus now. Fails if anything else is, or cannot be read."""
        found = set()
        for key in self.keys():
            document = named(key)
            assert document is not None, f"the catalogue does not name {key}"
            # It may have run out since it was listed, but it cannot be anything else than it says.
            self.stored(document, key.removeprefix(f"{document.key}.") if document.per is not None else "")
            found.add(document.key)
        streams = set(ask(self.wire, "STREAM.NAMES")["streams"])
        assert streams <= {key_value.STREAM, *(journal.stream for journal in JOURNALS)}
        return found

    def gateway(self, name: str) -> GatewayState:
        """What a gateway has told of itself, or one that has nothing to tell."""
        nothing = GatewayState(
            name=name, address="", measured_at_s=0, connections=0, publishes=0, acknowledged=0, advised=0
        )
        return self.get(GATEWAYS, name) or nothing


def put(here: Installation, document: Document[Value], value: Value) -> None:
    with ControlBus(here) as bus:
        bus.put(document, value, lease_s=LEASE_S if document.leased else None)


def put_raw(here: Installation, key: str, content: bytes) -> None:
    with ControlBus(here) as bus:
        bus.put_raw(key, content)


def delete(here: Installation, document: Document[Any]) -> None:
    with ControlBus(here) as bus:
        bus.delete(document)


def forget_all(here: Installation) -> None:
    """Take every document away: the next test finds a bus as it was at the start."""
    with ControlBus(here) as bus:
        bus._ask(key_value.to_delete(">"))
