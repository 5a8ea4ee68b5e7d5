"""How each case is played by a real client, at a real gateway."""

import base64
import contextlib
import http.client
import threading
from collections.abc import Callable, Mapping

import msgspec

from tidegate_bench.identity.cells import (
    ALIAS,
    ANOTHERS_NAME,
    EXPIRED,
    OWN_PORT,
    PUBLISH,
    RETAINED,
    REVOKED,
    RIGHT,
    SHARED,
    SPEAKS_FOR,
    SPEAKS_NOT_FOR,
    SUBSCRIBE,
    WILDCARD,
    WILL,
    WRONG,
    Cell,
)
from tidegate_bench.identity.client import ANSWER_S_MAX, MatrixClient, Told, tls_of
from tidegate_bench.identity.judging import Seen
from tidegate_bench.identity.oracle import CLOSED_EARLY
from tidegate_bench.identity.proofs import Proof
from tidegate_bench.identity.readings import reading
from tidegate_bench.identity.site import Site

# How long somebody listens who must not hear anything, and how long somebody waits who must.
SILENT_S, HEARS_S_MAX = 0.25, 10.0


class Dispatcher:
    """The application that sends to devices, for all cells of a broker."""

    def __init__(self, client: MatrixClient) -> None:
        self._client, self._lock = client, threading.Lock()

    def send(self, topic: str) -> None:
        with self._lock:
            told = self._client.publish(topic, b"for somebody")
        assert told.granted, f"the dispatcher may not send to {topic}: {told.words}"


class Stage(msgspec.Struct, frozen=True):
    site: Site
    dispatchers: Mapping[str, Dispatcher]


def play(stage: Stage, cell: Cell) -> Seen:
    if cell.transport.layer == "http":
        return _play_http(stage.site, cell)
    proof = stage.site.proofs.of(cell)
    client = MatrixClient(cell.transport, proof, f"at-{cell.number}", stage.site.authority_for(cell))
    with contextlib.closing(client):
        return _PLAYS[cell.case](stage, cell, client)


# -- who gets in


def _play_right(stage: Stage, cell: Cell, client: MatrixClient) -> Seen:
    """Everything that a device may do: a will, a subscription that hears, readings, a retained one among them."""
    client.leave_will(f"telemetry/{cell.client}", reading(cell, 9))
    opened = _opened(stage, cell, client)
    if not opened.granted:
        return _seen(opened)
    downlink = f"downlink/{cell.client}/valve"
    asked = [
        client.subscribe(f"downlink/{cell.client}/+"),
        client.publish(f"telemetry/{cell.client}", reading(cell)),
        client.publish(f"telemetry/{cell.client}/state", reading(cell, 1), retain=True),
    ]
    if not all(told.granted for told in asked):
        return Seen(told=", ".join(told.words for told in asked), any_granted=True)
    stage.dispatchers[cell.broker].send(downlink)
    if not client.hears(downlink, HEARS_S_MAX):
        return Seen(told="it does not hear its downlink", any_granted=True)
    return _seen(asked[1])


def _play_credentials(stage: Stage, cell: Cell, client: MatrixClient) -> Seen:
    """Who should not get in tries to send a reading once it is in."""
    return _after_opening(stage, cell, client, lambda: client.publish(_own(cell), reading(cell)))


def _play_anothers_name(stage: Stage, cell: Cell, client: MatrixClient) -> Seen:
    return _after_opening(stage, cell, client, lambda: client.publish(_victims(cell), reading(cell)))


def _play_own_port(stage: Stage, cell: Cell, client: MatrixClient) -> Seen:
    """At the broker itself, past the gateway."""
    opened = client.open(stage.site.door(cell).broker_address)
    return _seen(client.publish(_own(cell), reading(cell)) if opened.granted else opened)


# -- what it publishes


def _play_publish(stage: Stage, cell: Cell, client: MatrixClient) -> Seen:
    """At QoS 1, which is answered; where the connection stays, at the others too."""

    def publish() -> Told:
        told = client.publish(_victims(cell), reading(cell))
        for qos in (0, 2):
            client.throw(_victims(cell), reading(cell, 1 + qos), qos=qos)
        return told

    return _after_opening(stage, cell, client, publish)


def _play_retained(stage: Stage, cell: Cell, client: MatrixClient) -> Seen:
    return _after_opening(stage, cell, client, lambda: client.publish(_victims(cell), reading(cell), retain=True))


def _play_will(stage: Stage, cell: Cell, client: MatrixClient) -> Seen:
    client.leave_will(_victims(cell), reading(cell))
    opened = _opened(stage, cell, client)
    if opened.granted:
        client.vanish()
    return _seen(opened)


def _play_alias(stage: Stage, cell: Cell, client: MatrixClient) -> Seen:
    """An alias of its own topic is given to another's, then used without saying a topic."""

    def publish() -> Told:
        own = client.publish(_own(cell), reading(cell), alias=1)
        if not own.granted:
            return own
        told = client.publish(_victims(cell), reading(cell, 1), alias=1)
        client.throw("", reading(cell, 2), qos=1, alias=1)
        return told

    return _after_opening(stage, cell, client, publish)


def _play_speaks(stage: Stage, cell: Cell, client: MatrixClient) -> Seen:
    return _after_opening(stage, cell, client, lambda: client.publish(_victims(cell), reading(cell)))


# -- what it subscribes to


def _play_subscribe(stage: Stage, cell: Cell, client: MatrixClient) -> Seen:
    victim = cell.victim
    filters = {
        SUBSCRIBE: (f"downlink/{victim}", f"telemetry/{victim}"),
        SHARED: (f"$share/spies/downlink/{victim}",),
        WILDCARD: ("downlink/+", "downlink/#", "+/+", "#", "telemetry/#", "$SYS/#"),
    }[cell.case]
    opened = _opened(stage, cell, client)
    if not opened.granted:
        return _seen(opened)
    told = client.subscribe(*filters)
    stage.dispatchers[cell.broker].send(f"downlink/{victim}")
    client.hears(f"downlink/{victim}", SILENT_S)
    return msgspec.structs.replace(_seen(told), heard=len(client.heard))


_PLAYS: dict[str, Callable[[Stage, Cell, MatrixClient], Seen]] = {
    RIGHT: _play_right,
    WRONG: _play_credentials,
    EXPIRED: _play_credentials,
    REVOKED: _play_credentials,
    ANOTHERS_NAME: _play_anothers_name,
    PUBLISH: _play_publish,
    RETAINED: _play_retained,
    WILL: _play_will,
    ALIAS: _play_alias,
    SUBSCRIBE: _play_subscribe,
    SHARED: _play_subscribe,
    WILDCARD: _play_subscribe,
    SPEAKS_FOR: _play_speaks,
    SPEAKS_NOT_FOR: _play_speaks,
    OWN_PORT: _play_own_port,
}


def _opened(stage: Stage, cell: Cell, client: MatrixClient) -> Told:
    return client.open(stage.site.address(cell))


def _after_opening(stage: Stage, cell: Cell, client: MatrixClient, then: Callable[[], Told]) -> Seen:
    opened = _opened(stage, cell, client)
    return _seen(then() if opened.granted else opened)


def _seen(told: Told) -> Seen:
    return Seen(told=told.words, all_granted=told.granted, any_granted=told.any_granted)


def _own(cell: Cell) -> str:
    return f"telemetry/{cell.client}"


def _victims(cell: Cell) -> str:
    return f"telemetry/{cell.victim}"


# -- HTTP


def _play_http(site: Site, cell: Cell) -> Seen:
    """One reading: for the victim where it is about one, else for the client itself."""
    forges = cell.case in (ANOTHERS_NAME, PUBLISH, SPEAKS_FOR, SPEAKS_NOT_FOR)
    host, port = site.address(cell)
    proof, authority = site.proofs.of(cell), site.authority_for(cell)
    if authority is None:
        connection = http.client.HTTPConnection(host, port, timeout=ANSWER_S_MAX)
    else:
        connection = http.client.HTTPSConnection(host, port, timeout=ANSWER_S_MAX, context=tls_of(authority, proof))
    path = f"/v1/telemetry/{cell.victim if forges else cell.client}"
    with contextlib.closing(connection):
        try:
            connection.request("POST", path, reading(cell), _headers(cell, proof))
            status = connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return Seen(told=CLOSED_EARLY)
    is_taken = 200 <= status < 300
    return Seen(told=f"HTTP {status}", all_granted=is_taken, any_granted=is_taken)


def _headers(cell: Cell, proof: Proof) -> dict[str, str]:
    """A token bears itself, unless a name is said beside it; a certificate needs no header."""
    kind = {"Content-Type": "application/json"}
    if cell.method == "jwt" and cell.case != ANOTHERS_NAME:
        return {**kind, "Authorization": f"Bearer {proof.password}"}
    if proof.user is None:
        return kind
    named = base64.b64encode(f"{proof.user}:{proof.password or ''}".encode()).decode()
    return {**kind, "Authorization": f"Basic {named}"}
