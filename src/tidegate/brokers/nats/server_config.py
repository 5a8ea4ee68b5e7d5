"""The configuration text of one embedded NATS server: pure, so that it can be read and tested by itself."""

import json
from typing import Any

import msgspec

from tidegate.brokers.settings import BrokerSettings
from tidegate.machine.ports import HOST

ACCOUNT = "TELEMETRY"
GATEWAY_USER = "gateway"
PIPELINE_USER = "pipeline"
SYSTEM_USER = "system"
CONTROL_USER = "control"
ROUTE_USER = "route"
CONTROL_BYTES_MAX = 1024**3
# How a user may connect, in the server's words.
NATS, MQTT = "STANDARD", "MQTT"

# Clients of gateways live on ordinary topics. The log, the knowledge, the slices and what the server keeps of MQTT are
# none of theirs: one that could publish there would forge acknowledged messages or delete streams.
GATEWAY_DENIED = (
    "$JS.>",
    "$KV.>",
    "$O.>",
    "$SYS.>",
    "tg.>",
    "_INBOX.>",
)
GATEWAY_MAY_NOT_PUBLISH = (*GATEWAY_DENIED, "$MQTT.>")
# No more than that: once a client has subscribed to a wildcard, the server holds every delivery against these, and
# deliveries at QoS 1 bear the subject ``$MQTT.msgs.…``. Gateways refuse all filters that begin with ``$``.
GATEWAY_MAY_NOT_SUBSCRIBE = GATEWAY_DENIED


class ServerPorts(msgspec.Struct, frozen=True, kw_only=True):
    client: int
    monitor: int
    mqtt: int = 0
    route: int = 0


class Passwords(msgspec.Struct, frozen=True, kw_only=True):
    gateway: str = msgspec.field(name="device")  # as state directories have always had it
    pipeline: str
    system: str
    control: str
    route: str


def broker_config(
    index: int,
    ports: tuple[ServerPorts, ...],
    passwords: Passwords,
    settings: BrokerSettings,
    store: str,
    *,
    gateways_allowed: bool,
) -> str:
    """Broker ``index`` of a cluster that has one node per entry of ``ports``.

    A gateway let in before the slices listen would see readings acknowledged that nobody keeps: until then the brokers
    do not know the gateways' user, and the pipeline's may speak MQTT, which makes the server create its streams. From
    then on nobody but gateways may, and they nothing else.
    """
    own = ports[index]
    config = _common(f"broker-{index + 1}", own, store, settings.disk_bytes_max, settings)
    # Said, not guessed: a server that sees one peer when the first client connects would keep two copies for ever.
    config["mqtt"] = {"host": HOST, "port": own.mqtt, "stream_replicas": len(ports)}
    publish, subscribe = {"deny": list(GATEWAY_MAY_NOT_PUBLISH)}, {"deny": list(GATEWAY_MAY_NOT_SUBSCRIBE)}
    permissions = {"publish": publish, "subscribe": subscribe}
    gateway = _user(GATEWAY_USER, passwords.gateway, MQTT) | {"permissions": permissions}
    pipeline = _user(PIPELINE_USER, passwords.pipeline, *([NATS] if gateways_allowed else [NATS, MQTT]))
    config["accounts"] = {
        ACCOUNT: {
            "jetstream": "enabled",
            "users": [pipeline, *([gateway] if gateways_allowed else [])],
        },
        "SYS": {"users": [_user(SYSTEM_USER, passwords.system, NATS)]},
    }
    config["system_account"] = "SYS"
    if len(ports) > 1:
        routes = [
            f"nats://{ROUTE_USER}:{passwords.route}@{HOST}:{peer.route}"
            for number, peer in enumerate(ports)
            if number != index
        ]
        config["cluster"] = {
            "name": "tidegate",
            "host": HOST,
            "port": own.route,
            "authorization": {"user": ROUTE_USER, "password": passwords.route},
            "routes": routes,
        }
    return json.dumps(config, indent=2)


def control_config(ports: ServerPorts, passwords: Passwords, settings: BrokerSettings, store: str) -> str:
    """The control bus: a server of its own, so that a flood of readings never delays a decision.

    Its documents are part of the promise: epochs that a power failure set back would shut nodes out of their slices.
    """
    config = _common("control", ports, store, CONTROL_BYTES_MAX, settings)
    config["authorization"] = {"user": CONTROL_USER, "password": passwords.control}
    return json.dumps(config, indent=2)


def _user(name: str, password: str, *ways: str) -> dict[str, Any]:
    return {"user": name, "password": password, "allowed_connection_types": list(ways)}


def _common(name: str, ports: ServerPorts, store: str, disk_bytes_max: int, settings: BrokerSettings) -> dict[str, Any]:
    config: dict[str, Any] = {
        "server_name": name,
        "host": HOST,
        "port": ports.client,
        "http": f"{HOST}:{ports.monitor}",
        "jetstream": {
            "store_dir": store,
            "max_memory_store": 64 * 1024**2,
            "max_file_store": disk_bytes_max,
            # A QoS 1 subscription is a consumer: the default would refuse the 1,001st of a stream.
            "limits": {"default_max_consumers": 20_000},
        },
    }
    if settings.durability == "power-loss":
        config["jetstream"]["sync_interval"] = "always"
    return config
