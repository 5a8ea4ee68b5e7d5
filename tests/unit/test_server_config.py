"""What the embedded servers are told, as the text that they read."""

import json
from typing import Any, Literal

import msgspec
import pytest

from tidegate.brokers.nats.server_config import Passwords, ServerPorts, broker_config, control_config
from tidegate.brokers.settings import BrokerSettings

PASSWORDS = Passwords(gateway="g", pipeline="p", system="s", control="c", route="r")
PORTS = ServerPorts(client=1, monitor=2, mqtt=3)


def configs(durability: Literal["process-kill", "power-loss"]) -> dict[str, dict[str, Any]]:
    settings = BrokerSettings(durability=durability)
    broker = broker_config(0, (PORTS,), PASSWORDS, settings, "store", gateways_allowed=True)
    return {"broker": json.loads(broker), "control": json.loads(control_config(PORTS, PASSWORDS, settings, "store"))}


@pytest.mark.parametrize("server", ["broker", "control"])
def test_what_must_survive_a_power_failure_is_on_the_disk_before_it_is_answered(server: str) -> None:
    assert configs("power-loss")[server]["jetstream"]["sync_interval"] == "always"
    assert "sync_interval" not in configs("process-kill")[server]["jetstream"]


@pytest.mark.parametrize(
    ("gateways_allowed", "ways"),
    [
        pytest.param(False, {"pipeline": ["STANDARD", "MQTT"]}, id="while slices are opened, no gateway is known"),
        pytest.param(True, {"pipeline": ["STANDARD"], "gateway": ["MQTT"]}, id="then gateways alone speak MQTT"),
    ],
)
def test_who_may_connect_and_how(gateways_allowed: bool, ways: dict[str, list[str]]) -> None:
    config = broker_config(0, (PORTS,), PASSWORDS, BrokerSettings(), "store", gateways_allowed=gateways_allowed)
    users = json.loads(config)["accounts"]["TELEMETRY"]["users"]
    assert {user["user"]: user["allowed_connection_types"] for user in users} == ways


def test_passwords_are_stored_as_earlier_versions_did() -> None:
    stored = {"device": "g", "pipeline": "p", "system": "s", "control": "c", "route": "r"}
    assert msgspec.to_builtins(PASSWORDS) == stored
    assert msgspec.convert(stored, Passwords) == PASSWORDS
