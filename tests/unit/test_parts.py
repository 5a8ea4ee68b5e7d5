"""A part that ends is started again; a mistake in its settings ends the installation's start, and nothing later on."""

from pathlib import Path

import pytest

from tidegate.local.parts import BAD_INPUT, Part
from tidegate.model.errors import TidegateError


@pytest.fixture
def mistaken(tmp_path: Path) -> Part:
    """There is no such command."""
    part = Part("node-1", ["nonesuch"], {}, tmp_path / "node-1.log")
    part.start()
    assert part.has_ended(60)
    assert part.status == BAD_INPUT
    return part


def test_a_mistake_at_the_start_is_said_and_not_tried_twice(mistaken: Part) -> None:
    with pytest.raises(TidegateError, match=r"^node-1 cannot start: No such command 'nonesuch'"):
        mistaken.keep_running(lambda _: None, at_start=True)


def test_a_mistake_later_on_stops_nobody_else(mistaken: Part) -> None:
    said: list[str] = []
    mistaken.keep_running(said.append)
    assert said == [
        "node-1 ended with status 2 (No such command 'nonesuch'. Try 'tidegate --help'); it is started again."
    ]
    assert not mistaken.is_running, "after a moment"
