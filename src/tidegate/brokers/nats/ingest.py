"""From acknowledged MQTT messages to slices: the streams that do it, and how they are opened for traffic.

    QoS 1 publish ──▶ $MQTT_msgs ──▶ INGEST ──▶ SLICE_0 … SLICE_n
     (PUBACK: stored here)   (attributes a slice)   (dense sequences, read by Spark)

Nothing is lost on the way, because each step deletes a message only after the next has stored it:

* ``$MQTT_msgs`` is NATS's own and keeps a message while somebody is interested. The server (2.14 or later)
  gives a stream that sources from it a *durable* consumer, which acknowledges (``ack_policy: flow_control``)
  only what was stored. It outlives every kill, so interest never lapses and undelivered messages stay.
* ``INGEST`` has ``workqueue`` retention: a message stays until the consumer of its slice acknowledged it, also
  while that slice's stream does not exist yet. (``limits`` would grow for ever; a purge below the positions
  that the sources report would trust figures that lie after a restart; ``interest`` would drop what no
  consumer covers.)
* ``SLICE_i`` is deleted from by ``purging`` alone, below what the tables' own log says is committed.

Copies may be stored twice after a kill: exactly once is made of the identity in the reading.
"""

import contextlib
import socket
import time
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, TypeVar
from urllib.parse import urlsplit

from tidegate.bus.jetstream import STREAM_NOT_FOUND, Reply, ask, ask_all
from tidegate.bus.wire import Wire
from tidegate.model.errors import BrokerUnavailableError, UserError
from tidegate.model.installation import Installation
from tidegate.model.readings import TELEMETRY
from tidegate.mqtt import client as mqtt

MQTT_STREAM = "$MQTT_msgs"
INGEST_STREAM = "INGEST"
NANOSECONDS = 1_000_000_000
# An active source hears from its origin at least once a second, also when nothing flows.
SILENT_S_MAX = 5.0
POLL_S = 0.05
NUDGE_S = 3.0

Answer = TypeVar("Answer")


def slice_stream(number: int) -> str:
    return f"SLICE_{number}"


def open_for_traffic(wire: Wire, installation: Installation, *, timeout_s: float = 90.0) -> None:
    """Return when the first reading may come: every stream exists and every source is active.

    Call it after each start of the brokers. From then on whatever is acknowledged is kept and reaches its slice.
    How soon is another matter: after a restart a cluster needs some 10 s to get here, and a single node begins
    to move messages 10 to 20 s later; ``measure`` raises an alarm until it does.
    """
    deadline = time.monotonic() + timeout_s
    _wake_mqtt(installation, deadline)
    replicas = len(installation.data_urls)
    _persistently(lambda: ensure_topology(wire, installation.slices, replicas), deadline)
    nudge_at = time.monotonic() + NUDGE_S
    while idle := _persistently(lambda: _inactive_sources(wire, installation.slices), deadline):
        now = time.monotonic()
        if now > deadline:
            raise BrokerUnavailableError(
                f"After {timeout_s:.0f} s nothing flows into {', '.join(idle)}: see the brokers' logs in the "
                "state directory, then start again; acknowledged messages are kept."
            )
        if replicas > 1 and now > nudge_at:
            _nudge(wire, idle)
            nudge_at = now + NUDGE_S
        time.sleep(POLL_S)


def _nudge(wire: Wire, idle: Sequence[str]) -> None:
    """Let another node lead the streams that do not hear from their source.

    A stream that found its source without a leader tries again only after up to 40 s; a new leader tries at
    once. Both steps store before they delete, so a change of leader costs copies at most.
    """
    with contextlib.suppress(BrokerUnavailableError):
        ask_all(wire, [(f"STREAM.LEADER.STEPDOWN.{name}", None) for name in idle])


def ensure_topology(wire: Wire, slices: int, replicas: int) -> None:
    """Create the streams that are missing; refuse those that were made for something else."""
    wanted = topology(slices, replicas)
    copies = int(ask(wire, f"STREAM.INFO.{MQTT_STREAM}")["config"]["num_replicas"])
    if copies != replicas:
        raise UserError(
            f"The brokers keep {copies} copies of acknowledged messages, not {replicas}: they were first started "
            "with other settings; start in another state directory."
        )
    infos = ask_all(
        wire,
        [(f"STREAM.INFO.{config['name']}", None) for config in wanted],
        tolerated=frozenset({STREAM_NOT_FOUND}),
    )
    for config, info in zip(wanted, infos, strict=True):
        if "error" in info:
            ask(wire, f"STREAM.CREATE.{config['name']}", config, timeout_s=15.0)
            continue
        found = info["config"]
        different = [key for key, value in config.items() if key != "sources" and found.get(key) != value]
        if different or not _same_sources(config["sources"], found.get("sources", [])):
            raise UserError(
                f"The stream {config['name']} differs from what {slices} slices on {replicas} nodes need "
                f"({', '.join(different) or 'sources'}): keep the settings it was made with, or start in another "
                "state directory."
            )


def topology(slices: int, replicas: int) -> list[dict[str, Any]]:
    """The streams behind NATS's own. As many copies as nodes: of three, any one may be lost."""
    common = {"storage": "file", "num_replicas": replicas, "discard": "new", "allow_direct": True}
    # The device is the topic's second level: all its readings are in one slice, in order.
    attribution = f"tg.{{{{partition({slices},1)}}}}.{TELEMETRY}.{{{{wildcard(1)}}}}"
    origin = f"$MQTT.msgs.{TELEMETRY}.*"
    # One source per depth of topic: a single source with both filters takes a quarter of the messages per second.
    transforms = ({"src": origin, "dest": attribution}, {"src": f"{origin}.>", "dest": f"{attribution}.>"})
    ingest = {
        **common,
        "name": INGEST_STREAM,
        "retention": "workqueue",
        "sources": [{"name": MQTT_STREAM, "subject_transforms": [transform]} for transform in transforms],
    }
    parts = [
        {
            **common,
            "name": slice_stream(number),
            "retention": "limits",
            "sources": [{"name": INGEST_STREAM, "filter_subject": f"tg.{number}.>"}],
        }
        for number in range(slices)
    ]
    return [ingest, *parts]


def _same_sources(wanted: list[dict[str, Any]], found: list[dict[str, Any]]) -> bool:
    """Servers add fields of their own and keep the order."""
    return len(wanted) == len(found) and all(
        all(have.get(key) == value for key, value in want.items()) for want, have in zip(wanted, found, strict=True)
    )


def _inactive_sources(wire: Wire, slices: int) -> list[str]:
    infos = ask_all(wire, [(f"STREAM.INFO.{name}", None) for name in downstream(slices)])
    return [info["config"]["name"] for info in infos if source_alarm(info) is not None]


def downstream(slices: int) -> list[str]:
    return [INGEST_STREAM, *(slice_stream(number) for number in range(slices))]


def _persistently(attempt: Callable[[], Answer], deadline: float) -> Answer:
    """Streams that look for their leader refuse or say nothing: ask again until the deadline."""
    while True:
        try:
            return attempt()
        except BrokerUnavailableError:
            if time.monotonic() > deadline:
                raise
            time.sleep(POLL_S)


def _wake_mqtt(installation: Installation, deadline: float) -> None:
    """NATS creates its MQTT streams when the first MQTT client connects: be that client.

    Before gateways are let in that is the pipeline's user, which is refused from then on.
    """
    own = urlsplit(installation.data_urls[0])
    users = [(own.username or "", own.password or ""), (installation.mqtt_user, installation.mqtt_password)]
    await_login(installation.mqtt_addresses, users, deadline)


def await_login(addresses: Sequence[tuple[str, int]], users: Sequence[tuple[str, str]], deadline: float) -> None:
    """Return when an MQTT client was let in as one of the users (name, password) at one of the addresses."""
    while True:
        failures = []
        for (host, port), (user, password) in product(addresses, users):
            try:
                _connect_once(host, port, user, password)
            except (OSError, BrokerUnavailableError) as error:
                failures.append(f"{host}:{port} ({error})")
            else:
                return
        if time.monotonic() > deadline:
            raise BrokerUnavailableError(f"No MQTT client is let in at {', '.join(failures)}: check the brokers' logs.")
        time.sleep(POLL_S)


def _connect_once(host: str, port: int, user: str, password: str) -> None:
    """CONNECT with a clean session and DISCONNECT, MQTT 3.1.1: leaves nothing behind but the streams."""
    connect = mqtt.encode_connect("/tidegate/warm-up", user=user, password=password, keep_alive_s=30)
    with socket.create_connection((host, port), timeout=10.0) as connection:
        connection.sendall(connect)
        answer = connection.recv(4)
        if answer[:1] != b"\x20" or answer[3:4] != b"\x00":
            raise BrokerUnavailableError(f"CONNECT was answered with {answer.hex() or 'nothing'}")
        connection.sendall(mqtt.DISCONNECT)


def source_alarm(info: Reply) -> str | None:
    """-1 is no zero: the stream does not hear from its source, and cannot know how much waits there."""
    name, sources = info["config"]["name"], info.get("sources") or []
    if not sources:
        return f"{name} has no source: start the brokers again."
    origin = sources[0]["name"]
    silences_s = [int(source["active"]) / NANOSECONDS for source in sources]
    if min(silences_s) < 0:
        return f"{name} does not hear from {origin} yet: acknowledged messages wait there; look again soon."
    if max(silences_s) > SILENT_S_MAX:
        silence_s = max(silences_s)
        return f"{name} has not heard from {origin} for {silence_s:.0f} s: if that lasts, see the brokers' logs."
    return None
