"""Every siege: who attacks with how many sockets at a time, and which gateway. Each socket goes on without a pause.

How such a connection ends is not judged here (``attacks`` does that): what counts is what others notice of it.
"""

import contextlib
import ssl
from collections.abc import Iterator
from typing import Literal

import msgspec

from tidegate.machine.ports import HOST
from tidegate.model.readings import TELEMETRY
from tidegate.mqtt.client import encode_publish
from tidegate_bench.hostile.attacks import VICTIM, Attack
from tidegate_bench.hostile.packets import ANYBODY, OWN_TOPIC, PASSWORD, connect, subscribe, text
from tidegate_bench.hostile.poisons import poisons

SIEGE_S = 6.0
STRANGERS = "127.0.0.2"  # where a flood comes from
FILE_USER = "from-file"
ABSENT = "absent"  # an application that may read everything
UNTIL_CLOSED_S = 30.0
GIANT_BYTES = 64_000
_USER, _PASSWORD = ANYBODY.decode(), PASSWORD.decode()


class Siege(msgspec.Struct, frozen=True, kw_only=True):
    """``twin`` says what attackers do in calm: the same at a sink; or the same here, without what makes it a siege."""

    name: str
    attacks: tuple[Attack, ...]  # by turns
    sockets: int
    gateway: Literal["nats", "mosquitto", "few files"] = "nats"
    source: str = HOST
    newcomers: Literal["mqtt", "tls"] = "mqtt"  # by which listener well-behaved ones come
    by_http: bool = False  # whether well-behaved ones come by HTTP as well
    twin: Literal["sink", "here"] = "sink"
    seconds: float = SIEGE_S


def sieges() -> tuple[Siege, ...]:
    """Those at one gateway follow each other."""
    return (
        Siege(name="poisoners", attacks=tuple(poisons()), sockets=16),
        Siege(name="giant subscriptions", attacks=tuple(_giants()), sockets=8),
        Siege(name="slow HTTP", attacks=_slow_http(), sockets=2_000, by_http=True, seconds=8.0),
        Siege(name="silent TLS", attacks=_slow_tls(), sockets=1_700, newcomers="tls"),
        Siege(name="strangers of one address", attacks=_strangers(), sockets=3_000, source=STRANGERS),
        Siege(name="wrong passwords, derived", attacks=tuple(_wrong_derived()), sockets=32),
        Siege(name="wrong passwords, of a file", attacks=_wrong_of_file(), sockets=32),
        Siege(name="an absent subscriber", attacks=_telemetry(), sockets=4, twin="here", seconds=12.0),
        Siege(name="poisoners at Mosquitto", gateway="mosquitto", attacks=tuple(poisons()), sockets=16),
        Siege(name="no more open files", gateway="few files", attacks=_takers(), sockets=1_200),
    )


def _silent(name: str, listener: Literal["mqtt", "tls", "http"] = "mqtt", sends: bytes = b"") -> Attack:
    """It says so much, and waits until it is closed."""
    return Attack(name=name, listener=listener, sends=sends, ends="either", within_s=UNTIL_CLOSED_S)


def _giants() -> Iterator[Attack]:
    """As large as such a packet may be, again and again on one connection: tiny filters, and its own."""
    own = text(b"downlink/" + ANYBODY + b"/x")
    for version in (4, 5):
        for name, filters in (("filters", text(b"a")), ("own filters", own)):
            for kind, first, one in (("SUBSCRIBE", 0x82, filters + b"\1"), ("UNSUBSCRIBE", 0xA2, filters)):
                many = one * (GIANT_BYTES // len(one))
                sends = b"".join(subscribe(version, many, first=first, packet_id=number) for number in range(1, 5))
                yield Attack(
                    name=f"{kind} of {GIANT_BYTES:,} bytes of {name} ({version})",
                    version=version,
                    opening=connect(version, _USER, _PASSWORD),
                    sends=sends,
                    ends="either",
                    within_s=0.5,
                )


def _slow_http() -> tuple[Attack, ...]:
    """Three of four say nothing, one sends half a head or half a body."""
    head = f"POST /v1/{TELEMETRY}/{_USER} HTTP/1.1\r\nHost: gateway\r\n".encode()
    allowed = f"Authorization: Bearer {_PASSWORD}\r\nContent-Length: 100\r\n\r\n".encode()
    return (
        *(_silent("silence", "http"),) * 6,
        _silent("half a head", "http", head),
        _silent("half a body", "http", head + allowed + b'{"value": '),
    )


def _slow_tls() -> tuple[Attack, ...]:
    return (
        *(_silent("silence", "tls"),) * 15,
        *(_silent("a greeting, then silence", "tls", greeting()),) * 2,
    )


def greeting() -> bytes:
    """How a client begins a handshake."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing).do_handshake()
    return outgoing.read()


def _strangers() -> tuple[Attack, ...]:
    return _silent("silence"), _silent("half a CONNECT", sends=connect(4, _USER, _PASSWORD)[:9])


def _wrong_derived() -> Iterator[Attack]:
    no_key = f"tg1.{'0' * 6}.1.{'A' * 24}"
    for version in (4, 5):
        for name, sends in (
            ("a guess", connect(version, _USER, "guess")),
            ("by no key", connect(version, _USER, no_key)),
            ("another's", connect(version, VICTIM, _PASSWORD)),
        ):
            yield Attack(name=f"{name} ({version})", version=version, sends=sends, ends="either", within_s=5.0)


def _wrong_of_file() -> tuple[Attack, ...]:
    return (Attack(name="a guess", sends=connect(4, FILE_USER, "guess"), ends="either", within_s=5.0),)


def _telemetry() -> tuple[Attack, ...]:
    """About a megabyte a second that an absent subscriber would like to read one day."""
    payload = b'{"value": 21.5, "note": "' + b"x" * 1_000 + b'"}'
    many = b"".join(encode_publish(OWN_TOPIC, payload, packet_id=number) for number in range(1, 51))
    opening = connect(4, _USER, _PASSWORD)
    return (Attack(name="telemetry", opening=opening, sends=many, ends="either", within_s=0.2),)


def _takers() -> tuple[Attack, ...]:
    return _silent("silence"), _silent("silence by HTTP", "http")
