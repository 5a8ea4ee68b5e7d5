"""What the embedded servers are told, as the text that they read."""

import json
from typing import Any, Literal

import pytest

from tidegate.brokers.nats.server_config import Passwords, ServerPorts, broker_config, control_config
from tidegate.brokers.settings import BrokerSettings

PASSWORDS = Passwords(device="d", pipeline="p", system="s", control="c", route="r")
PORTS = ServerPorts(client=1, monitor=2, mqtt=3)


def configs(durability: Literal["process-kill", "power-loss"]) -> dict[str, dict[str, Any]]:
    settings = BrokerSettings(durability=durability)
    broker = broker_config(0, (PORTS,), PASSWORDS, settings, "store", devices_allowed=True)
    return {"broker": json.loads(broker), "control": json.loads(control_config(PORTS, PASSWORDS, settings, "store"))}


@pytest.mark.parametrize("server", ["broker", "control"])
def test_what_must_survive_a_power_failure_is_on_the_disk_before_it_is_answered(server: str) -> None:
    assert configs("power-loss")[server]["jetstream"]["sync_interval"] == "always"
    assert "sync_interval" not in configs("process-kill")[server]["jetstream"]
