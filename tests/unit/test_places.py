"""Ports of an installation: where devices look first, and where they were before."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidegate.local import places
from tidegate.local.places import settle_places
from tidegate.machine.ports import FREE_PORTS, HOST, free_port
from tidegate.settings.tree import Settings


@pytest.fixture
def usual(monkeypatch: pytest.MonkeyPatch) -> range:
    """Two ports in the place of the usual ones, which somebody may really use."""
    first = next(port for port in iter(lambda: free_port(set()), 0) if port + 1 in FREE_PORTS)
    monkeypatch.setattr(places, "MQTT_PORTS", range(first, first + 2))
    return range(first, first + 2)


@pytest.fixture
def in_use(usual: range) -> Iterator[None]:
    with socket.socket() as other:
        other.bind((HOST, usual[0]))
        other.listen(1)
        yield


def test_devices_find_the_usual_port_and_it_stays(usual: range, tmp_path: Path) -> None:
    first = settle_places(tmp_path, Settings())
    assert first.gateway_mqtt == usual[0]
    assert settle_places(tmp_path, Settings()) == first


@pytest.mark.usefixtures("in_use")
def test_where_it_is_in_use_the_next_one_is_taken_and_stays(usual: range, tmp_path: Path) -> None:
    assert settle_places(tmp_path, Settings()).gateway_mqtt == usual[1]


def test_a_port_that_was_written_down_stays_though_the_usual_one_is_free_again(usual: range, tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind((HOST, usual[0]))
        other.listen(1)
        before = settle_places(tmp_path, Settings())
    assert settle_places(tmp_path, Settings()) == before
