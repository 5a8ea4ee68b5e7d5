"""The control bus as tests use it: documents that they write, read and take away again."""

from typing import TypeVar

import msgspec

from tidegate.bus.assignments import Assignments
from tidegate.bus.audit import AuditLog
from tidegate.bus.knowledge import Knowledge
from tidegate.bus.wire import Wire
from tidegate.model.installation import Installation
from tidegate.model.observations import GatewayState

Document = TypeVar("Document")


class ControlBus:
    """A connection of the test's own, and what is kept behind it."""

    def __init__(self, here: Installation, *, timeout_s: float = 5.0) -> None:
        self._wire = Wire(here.control_urls, timeout_s=timeout_s)
        self.knowledge = Knowledge(self._wire)
        self.assignments = Assignments(self.knowledge, here.slices)
        self.audit = AuditLog(self._wire)

    def __enter__(self) -> "ControlBus":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._wire.close()

    def read(self, key: str, kind: type[Document]) -> Document | None:
        entry = self.knowledge.get(key)
        return msgspec.json.decode(entry.value, type=kind) if entry else None

    def gateway(self, name: str) -> GatewayState:
        """What a gateway has told of itself, or one that has nothing to tell."""
        nothing = GatewayState(
            name=name, address="", measured_at_s=0, connections=0, publishes=0, acknowledged=0, advised=0
        )
        return self.read(f"gateways.{name}", GatewayState) or nothing


def put(here: Installation, key: str, document: object) -> None:
    with ControlBus(here) as bus:
        bus.knowledge.put(key, msgspec.json.encode(document))


def delete(here: Installation, key: str) -> None:
    with ControlBus(here) as bus:
        bus.knowledge.delete(key)


def forget_all(here: Installation) -> None:
    """Take every document away: the next test finds a bus as it was at the start."""
    delete(here, ">")
