"""The port that brokers stand behind: every adapter has what it asks for, and a mistake in a kind is one sentence."""

import importlib
import inspect
from pathlib import Path

import pytest

from tidegate.brokers.opening import ADAPTERS, EMBEDDED_KIND, address_of_log, open_brokers, open_log
from tidegate.brokers.port import Adapter, Brokers, SlicedLog
from tidegate.model.errors import UserError
from tidegate.model.installation import Installation, LogAddress

NOWHERE = "nats://a:b@127.0.0.1:1"
INSTALLATION = Installation(
    control_urls=(NOWHERE,),
    data_urls=(NOWHERE,),
    mqtt_addresses=(("127.0.0.1", 2), ("127.0.0.1", 3)),
    monitor_urls=("http://127.0.0.1:4", "http://127.0.0.1:5"),
    mqtt_user="user",
    mqtt_password="word",
    slices=8,
    tables="nowhere",
)


def without_log(installation: Installation) -> Installation:
    fields = {name: getattr(installation, name) for name in installation.__struct_fields__}
    return Installation(**{**fields, "slices": 0})


def public(protocol: type) -> set[str]:
    return {name for name in vars(protocol) if not name.startswith("_")}


@pytest.mark.parametrize("kind", ADAPTERS)
def test_an_adapter_has_what_the_port_asks_for(kind: str) -> None:
    adapter = importlib.import_module(ADAPTERS[kind])
    for name in public(Adapter):
        asked = inspect.signature(getattr(Adapter, name)).parameters
        given = inspect.signature(getattr(adapter, name)).parameters
        assert list(given) == [parameter for parameter in asked if parameter != "self"], name


def test_brokers_have_addresses_credentials_and_perhaps_a_log() -> None:
    brokers = open_brokers(INSTALLATION)
    assert public(Brokers) <= set(dir(brokers))
    assert brokers.addresses == INSTALLATION.mqtt_addresses
    assert brokers.credentials == ("user", "word")
    assert brokers.log is not None
    assert public(SlicedLog) <= set(dir(brokers.log))
    brokers.close()


def test_brokers_without_a_log_are_brokers() -> None:
    brokers = open_brokers(without_log(INSTALLATION))
    assert brokers.log is None
    unreachable = brokers.states()
    assert [(state.name, state.healthy) for state in unreachable] == [("broker-1", False), ("broker-2", False)]
    assert all(state.problem for state in unreachable)
    brokers.close()


def test_a_node_cannot_work_where_there_is_no_log() -> None:
    assert address_of_log(INSTALLATION) == LogAddress("nats", (NOWHERE,), 8)
    with pytest.raises(UserError, match=r"\(nats\) keep no log, so processing nodes have nothing to read"):
        address_of_log(without_log(INSTALLATION))


def test_a_kind_that_nobody_knows_is_refused_with_its_evidence() -> None:
    with pytest.raises(UserError, match="There is no adapter for brokers of the kind 'carrier pigeon'") as caught:
        open_log(LogAddress("carrier pigeon", (), 1))
    assert (caught.value.found, caught.value.expected) == ("carrier pigeon", tuple(ADAPTERS))


def test_what_is_embedded_has_an_adapter() -> None:
    assert EMBEDDED_KIND in ADAPTERS
    assert Path(importlib.import_module(ADAPTERS[EMBEDDED_KIND]).__file__ or "").is_file()
