"""Every attack: what is sent, how soon the connection must be over, and which last words are right.

MQTT 3.1.1 has words for a refused CONNECT only; later a server just closes. MQTT 5 names its reason. Where a
specification leaves a choice, each of its answers counts.
"""

from collections.abc import Iterator
from typing import Literal

import msgspec

from tidegate.model.readings import TELEMETRY
from tidegate_bench.hostile.packets import (
    ANYBODY,
    OWN_TOPIC,
    PASSWORD,
    connect,
    frame,
    packet,
    publish,
    subscribe,
    text,
    topic_alias,
    upgrade,
    user_properties,
)

CONNECT_TIMEOUT_S = 2.0  # of the gateway that is attacked
SLACK_S = 2.0
KEEP_ALIVE_S = 1
LINGER_S = 5.0
STAYS_S = 2.0
SILENCE = b""
PROPERTIES = 5_000
PINGS = 2_000
REFUSED = 500  # publishes, and filters, of one attempt
VICTIM = "bystander-0"

_VICTIMS_TOPIC = f"{TELEMETRY}/{VICTIM}".encode()
_SHOWN = {4: "3.1.1", 5: "5"}
_NOTHING = ("",)
_ANY_CLOSE = ("", "close 1000", "close 1001", "close 1002", "close 1003", "close 1008", "close 1011")
# There is no one code for more than a server is willing to take.
_TOO_MUCH = ("0x81", "0x82", "0x83", "0x95", "0x97")


class Attack(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    listener: Literal["mqtt", "websocket", "proxy", "tls", "http"] = "mqtt"
    version: int = 4  # of MQTT, for its last words
    user: bytes = ANYBODY  # replaced by a name that no other attempt has, like the password that belongs to it
    opening: bytes = b""  # in good order: what follows is sent once it was answered
    sends: bytes = b""
    drip_s: float = 0.0  # between its bytes
    half_closes: bool = False
    reads: bool = True
    ends: Literal["closed", "stays", "either"] = "closed"
    within_s: float = SLACK_S
    words: tuple[str, ...] = _NOTHING
    times: int = 40

    def is_clean(self, closed: bool, seconds: float, words: str) -> bool:
        if self.ends == "either":
            return True
        if self.ends == "stays":
            return not closed and words in self.words
        return closed and seconds <= self.within_s and words in self.words


def attacks(user: str = ANYBODY.decode(), password: str = PASSWORD.decode()) -> tuple[Attack, ...]:
    """By clients that are let in, unless they never get that far; what stands for names is replaced at each attempt."""
    return (
        *_before_connect(user, password),
        *_not_let_in(user, password),
        *_hung_up_on(user, password),
        *_after_connect(user, password),
        *_not_its_own(user, password),
        *_keep_alive(user, password),
        *_other_listeners(),
    )


def _before_connect(user: str, password: str) -> Iterator[Attack]:
    late_s = CONNECT_TIMEOUT_S + SLACK_S
    good = connect(4, user, password)
    yield Attack(name="PUBLISH before CONNECT", sends=publish(4, b"a"))
    yield Attack(name="PUBACK before CONNECT", sends=packet(0x40, b"\x00\x01"))
    yield Attack(name="HTTP instead of MQTT", sends=b"GET / HTTP/1.1\r\nHost: gateway\r\n\r\n")
    yield Attack(name="CONNECT with a length of five bytes", sends=b"\x10\xff\xff\xff\xff\x01")
    yield Attack(name="CONNECT of 200 MiB announced", sends=b"\x10\x80\x80\x80\x64" + text(b"MQTT"))
    yield Attack(name="unknown protocol name", sends=connect(4, user, password, name=b"MQTX"), words=("", "CONNACK 1"))
    yield Attack(name="unknown protocol level", sends=connect(9, user, password), words=("CONNACK 1", "CONNACK 0x84"))
    will = text(b"will") + text(b"gone")
    yield Attack(name="will at QoS 3 (3.1.1)", sends=connect(4, user, password, flags=0xDE, will=will))
    yield Attack(
        name="will at QoS 3 (5)",
        version=5,
        sends=connect(5, user, password, flags=0xDE, will=b"\x00" + will),
        words=("CONNACK 0x81",),
    )
    bad = b"\xff\xfe"
    yield Attack(
        name="client id is no UTF-8 (3.1.1)", sends=connect(4, user, password, client_id=bad), words=("", "CONNACK 2")
    )
    yield Attack(
        name="client id is no UTF-8 (5)",
        version=5,
        sends=connect(5, user, password, client_id=bad),
        words=("CONNACK 0x81", "CONNACK 0x85"),
    )
    yield Attack(
        name="thousands of user properties in CONNECT (5)",
        version=5,
        sends=connect(5, user, password, properties=user_properties(PROPERTIES)),
        words=tuple(f"CONNACK {code}" for code in _TOO_MUCH),
    )
    yield Attack(name="CONNECT byte by byte", sends=good, drip_s=0.2, within_s=late_s, times=20)
    yield Attack(name="half a CONNECT, then silence", sends=good[:9], within_s=late_s, times=20)
    yield Attack(name="connects and says nothing", sends=SILENCE, within_s=late_s, times=20)


def _not_let_in(user: str, password: str) -> Iterator[Attack]:
    """Who has no password, or not that of the name it says."""
    no_key = f"tg1.{'0' * 6}.1.{'A' * 24}"
    for version, wrong, forbidden in ((4, "CONNACK 4", "CONNACK 5"), (5, "CONNACK 0x86", "CONNACK 0x87")):
        shown = _SHOWN[version]
        for name, sends in (
            ("a guessed password", connect(version, user, "guess")),
            ("a password by no key", connect(version, user, no_key)),
            ("another's name", connect(version, VICTIM, password)),
        ):
            yield Attack(name=f"{name} ({shown})", version=version, sends=sends, words=(wrong,))
        will = (b"\0" if version == 5 else b"") + text(_VICTIMS_TOPIC) + text(b"gone")
        sends = connect(version, user, password, flags=0xC6, will=will)
        yield Attack(name=f"will on another's topic ({shown})", version=version, sends=sends, words=(forbidden,))


def _not_its_own(user: str, password: str) -> Iterator[Attack]:
    """Topics of others, again and again. Only MQTT 5 has words for a publish that is not passed on."""
    ping = packet(0xC0, b"")
    forged = publish(4, _VICTIMS_TOPIC)
    yield Attack(name="publish on another's topic (3.1.1)", opening=connect(4, user, password), sends=forged)
    many = publish(5, _VICTIMS_TOPIC) * REFUSED
    filters = text(b"#") + b"\1"
    for name, version, sends in (
        ("publishes on others' topics", 5, many + ping),
        ("SUBSCRIBE to everything", 4, subscribe(4, filters * REFUSED) + ping),
        ("SUBSCRIBE to everything", 5, subscribe(5, filters * REFUSED) + ping),
    ):
        yield Attack(
            name=f"{name} ({_SHOWN[version]})",
            version=version,
            opening=connect(version, user, password),
            sends=sends,
            ends="stays",
            within_s=STAYS_S,
            words=("PINGRESP",),
            times=10,
        )


def _hung_up_on(user: str, password: str) -> Iterator[Attack]:
    """What the embedded broker closes the connection for: that client shall hear it at once, and wait for nobody."""
    spaced = text(OWN_TOPIC + b"/a b") + text(b"gone")
    yield Attack(name="will on a topic with a space (3.1.1)", sends=connect(4, user, password, flags=0xC6, will=spaced))
    yield Attack(
        name="will on a topic with a space (5)",
        version=5,
        sends=connect(5, user, password, flags=0xC6, will=b"\x00" + spaced),
        words=("CONNACK 0x80",),
    )


def _giants(version: int) -> Iterator[tuple[str, bytes]]:
    """Within the largest packet, and so many filters that looking at each takes most of a second."""
    yield "SUBSCRIBE of 200,000 filters", subscribe(version, (text(b"a") + b"\0") * 200_000)
    yield "UNSUBSCRIBE of 200,000 filters", subscribe(version, text(b"a") * 200_000, first=0xA2)


def _after_connect(user: str, password: str) -> Iterator[Attack]:
    """Each in both versions; the code is that of MQTT 5."""
    malformed, error, topic, large, alias = 0x81, 0x82, 0x90, 0x95, 0x94
    truncated = packet(0x32, bytes(100))[:40]
    for version in (4, 5):
        for name, sends, codes in (
            ("zero-length topic", publish(version, b""), (error, topic)),
            ("wildcard in a topic", publish(version, OWN_TOPIC + b"/#"), (topic,)),
            ("wildcard of NATS in a topic", publish(version, OWN_TOPIC + b"/>"), (topic,)),
            ("topic is no UTF-8", publish(version, OWN_TOPIC + b"\xff\xfe"), (malformed, topic)),
            ("NUL in a topic", publish(version, OWN_TOPIC + b"\0b"), (malformed, topic)),
            ("QoS 3", publish(version, OWN_TOPIC, first=0x36), (malformed,)),
            ("PUBLISH of 200 MiB announced", b"\x32\x80\x80\x80\x64" + text(b"a"), (large,)),
            ("a length of five bytes", b"\x32\xff\xff\xff\xff\x01", (malformed,)),
            ("second CONNECT", connect(version, user, password), (error,)),
            ("SUBSCRIBE without filters", subscribe(version, b""), (error, malformed)),
            ("SUBSCRIBE with wrong flags", subscribe(version, text(b"a") + b"\0", first=0x80), (malformed,)),
            ("SUBACK from a client", packet(0x90, b"\x00\x01" + b"\0" * (version - 3)), (error,)),
            ("packet type 0", packet(0x00, b""), (malformed, error)),
            *(
                (
                    ("topic alias 0", publish(5, OWN_TOPIC, properties=topic_alias(0)), (alias,)),
                    ("unknown topic alias", publish(5, b"", properties=topic_alias(1)), (error, alias)),
                    (
                        "thousands of user properties",
                        publish(5, OWN_TOPIC, properties=user_properties(PROPERTIES)),
                        None,
                    ),
                )
                if version == 5
                else ()
            ),
        ):
            yield Attack(
                name=f"{name} ({'5' if version == 5 else '3.1.1'})",
                version=version,
                opening=connect(version, user, password),
                sends=sends,
                words=_words(version, codes),
            )
        for name, sends in _giants(version):
            yield Attack(
                name=f"{name} ({'5' if version == 5 else '3.1.1'})",
                version=version,
                opening=connect(version, user, password),
                sends=sends,
                words=_words(version, (large,)),
                times=10,
            )
        yield Attack(
            name=f"truncated PUBLISH, then no more ({'5' if version == 5 else '3.1.1'})",
            version=version,
            opening=connect(version, user, password),
            sends=truncated,
            half_closes=True,
            within_s=LINGER_S + SLACK_S,
            words=("", "DISCONNECT 0x81", "DISCONNECT 0x82"),
            times=20,
        )


def _words(version: int, codes: tuple[int, ...] | None) -> tuple[str, ...]:
    if version != 5:
        return _NOTHING
    if codes is None:
        return tuple(f"DISCONNECT {code}" for code in _TOO_MUCH)
    return tuple(f"DISCONNECT 0x{code:02x}" for code in codes)


def _keep_alive(user: str, password: str) -> Iterator[Attack]:
    ping, truncated = packet(0xC0, b""), packet(0x32, bytes(100))[:40]
    for version in (4, 5):
        shown = "5" if version == 5 else "3.1.1"
        brief = connect(version, user, password, keep_alive_s=KEEP_ALIVE_S)
        for name, sends in (("silent", SILENCE), ("truncated PUBLISH, then silence", truncated)):
            yield Attack(
                name=f"{name}, beyond its keep-alive ({shown})",
                version=version,
                opening=brief,
                sends=sends,
                within_s=1.5 * KEEP_ALIVE_S + SLACK_S,
                words=("DISCONNECT 0x8d",) if version == 5 else _NOTHING,
                times=20,
            )
        for keep_alive_s in (0, 65_535):
            yield Attack(
                name=f"keep-alive {keep_alive_s} ({shown})",
                version=version,
                opening=connect(version, user, password, keep_alive_s=keep_alive_s),
                sends=ping,
                ends="stays",
                within_s=STAYS_S,
                words=("PINGRESP",),
                times=10,
            )
    opening = connect(4, user, password)
    yield Attack(
        name="ping flood",
        opening=opening,
        sends=ping * PINGS,
        words=_NOTHING,
        times=10,
    )
    yield Attack(
        name="ping flood, answers never read",
        opening=opening,
        sends=ping * (10 * PINGS),
        reads=False,
        ends="either",
        within_s=STAYS_S,
        times=10,
    )


def _other_listeners() -> Iterator[Attack]:
    late_s = CONNECT_TIMEOUT_S + SLACK_S
    for name, opening, sends, words in (
        ("text frame", upgrade(), frame(1, b"\x10\x00"), ("close 1003",)),
        ("unmasked frame", upgrade(), frame(2, b"\x10\x00", masked=False), ("close 1002",)),
        (
            "frame of exabytes announced",
            upgrade(),
            b"\x82\xff" + (1 << 62).to_bytes(8, "big"),
            ("close 1009", "close 1002"),
        ),
        ("reserved opcode", upgrade(), frame(5, b""), ("close 1002",)),
        ("not MQTT in a frame", upgrade(), frame(2, b"\x32\x00"), _ANY_CLOSE),
        ("wrong subprotocol", b"", upgrade(protocol="chat"), ("HTTP 400",)),
        ("upgrade without a key", b"", upgrade(key=""), ("HTTP 400",)),
        ("wrong path", b"", upgrade(path="/else"), ("HTTP 404",)),
        ("HTTP garbage", b"", b"\x00\xff garbage\r\n\r\n", ("", "HTTP 400")),
        ("head without an end", b"", b"GET /mqtt HTTP/1.1\r\nX: " + b"x" * 100_000, ("", "HTTP 400", "HTTP 431")),
    ):
        yield Attack(name=f"WebSocket: {name}", listener="websocket", opening=opening, sends=sends, words=words)
    yield Attack(
        name="WebSocket: upgrade byte by byte",
        listener="websocket",
        sends=upgrade(),
        drip_s=0.1,
        within_s=late_s,
        words=("", "HTTP 408"),
        times=20,
    )
    signature = b"\r\n\r\n\0\r\nQUIT\n"
    for name, sends in (
        ("garbage", b"this is no header at all, not even one of version 1"),
        ("wrong version", signature + b"\x11\x11\x00\x0c" + bytes(12)),
        ("too short for its family", signature + b"\x21\x11\x00\x02" + bytes(2)),
        ("longest length", signature + b"\x21\x11\xff\xff" + bytes(1000)),
    ):
        yield Attack(name=f"PROXY: {name}", listener="proxy", sends=sends, within_s=late_s)
    yield Attack(name="PROXY: silence", listener="proxy", within_s=late_s, times=20)
    for name, sends in (("garbage", b"\x00\x01\x02 garbage" * 20), ("MQTT without TLS", connect(4, "a", "b"))):
        yield Attack(name=f"TLS: {name}", listener="tls", sends=sends, words=("", "TLS alert"))
    yield Attack(
        name="TLS: half a greeting, then silence",
        listener="tls",
        sends=b"\x16\x03\x01\x02\x00\x01",
        within_s=late_s,
        times=20,
    )
