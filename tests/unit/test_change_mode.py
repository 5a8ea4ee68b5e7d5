"""Changing the mode: by parts, and where the document cannot be read."""

from typing import Any

import pytest

from tidegate.bus.client import Bus
from tidegate.bus.documents import MODE
from tidegate.bus.key_value import Entry
from tidegate.controller.acting import change_mode
from tidegate.model.decisions import Mode


class OneDocument(Bus):
    """A bus that has a mode and nothing else; ``between`` is written by somebody else after the first look."""

    def __init__(self, content: bytes, between: bytes | None = None) -> None:
        super().__init__(["nats://nowhere"])
        self.content, self.revision, self._between = content, 7, between

    def entry(self, *_: Any) -> Entry | None:
        seen = Entry(self.content, self.revision, 0.0)
        if self._between is not None:
            self.content, self.revision, self._between = self._between, self.revision + 1, None
        return seen

    def put(self, *arguments: Any, revision: int | None = None, **_: Any) -> int | None:
        assert revision is not None, "only over what was read"
        if revision != self.revision:
            return None
        self.content, self.revision = MODE.encode(arguments[1]), self.revision + 1
        return self.revision

    @property
    def mode(self) -> Mode:
        return MODE.decode(self.content)


DAMAGED = [b"\xffgarbage", b'{"send_rate": "Shadow"}']


@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_mode_is_written_anew_frozen_and_that_is_said(content: bytes) -> None:
    bus, said = OneDocument(content), list[str]()
    assert change_mode(bus, {"nodes": "shadow"}, said.append) == Mode(nodes="shadow", frozen=True) == bus.mode
    (sentence,) = said
    assert "was damaged" in sentence
    assert "frozen until 'tidegate release'" in sentence


@pytest.mark.parametrize("content", [*DAMAGED, b"{}"])
def test_freezing_and_releasing_always_work(content: bytes) -> None:
    for frozen in (True, False):
        bus = OneDocument(content)
        change_mode(bus, {"frozen": frozen})
        assert bus.mode.frozen is frozen


def test_a_damaged_mode_that_somebody_mends_meanwhile_is_not_overwritten() -> None:
    bus = OneDocument(b"{{", between=MODE.encode(Mode(slices="off", frozen=True)))
    assert change_mode(bus, {"nodes": "shadow"}) == Mode(slices="off", nodes="shadow", frozen=True)
