"""The control bus as tests use it: documents that they write, read and take away again."""

import contextlib
from collections.abc import Iterator
from typing import TypeVar

import msgspec

from tidegate.bus.assignments import Assignments
from tidegate.bus.knowledge import Knowledge
from tidegate.bus.wire import Wire
from tidegate.model.installation import Installation
from tidegate.model.observations import GatewayState

Document = TypeVar("Document")


@contextlib.contextmanager
def knowledge_of(here: Installation, *, timeout_s: float = 5.0) -> Iterator[Knowledge]:
    with Wire(here.control_urls, timeout_s=timeout_s) as wire:
        yield Knowledge(wire)


@contextlib.contextmanager
def assignments_of(here: Installation) -> Iterator[Assignments]:
    with knowledge_of(here) as knowledge:
        yield Assignments(knowledge, here.slices)


def put(here: Installation, key: str, document: object) -> None:
    with knowledge_of(here) as knowledge:
        knowledge.put(key, msgspec.json.encode(document))


def delete(here: Installation, key: str) -> None:
    with knowledge_of(here) as knowledge:
        knowledge.delete(key)


def read(knowledge: Knowledge, key: str, kind: type[Document]) -> Document | None:
    entry = knowledge.get(key)
    return msgspec.json.decode(entry.value, type=kind) if entry else None


def gateway_state(knowledge: Knowledge, name: str) -> GatewayState:
    """What a gateway has told of itself, or one that has nothing to tell."""
    nothing = GatewayState(
        name=name, address="", measured_at_s=0, connections=0, publishes=0, acknowledged=0, advised=0
    )
    return read(knowledge, f"gateways.{name}", GatewayState) or nothing


def forget_all(here: Installation) -> None:
    """Take every document away: the next test finds a bus as it was at the start."""
    delete(here, ">")
