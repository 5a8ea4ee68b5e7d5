"""CONNECTs that NATS or Mosquitto hangs up on, or has done so: each from a device with the right password.

A gateway that took a broker's hanging up for its silence would try the next broker, wait, and keep others waiting.
"""

from collections.abc import Iterator

from tidegate_bench.hostile.attacks import Attack
from tidegate_bench.hostile.packets import ANY_NUMBER, ANYBODY, OWN_TOPIC, PASSWORD, connect, text

STAYS_S = 0.1  # if it is not hung up on
ODD_USER = b"hostile\x01" + ANY_NUMBER
LONG_USER = b"x" * 900 + ANY_NUMBER
_PASSWORD = PASSWORD.decode()
_WILL, _WILL_QOS_2_RETAINED, _NOT_CLEAN = 0xC6, 0xF6, 0xC0
_NO_PASSWORD_BUT_ANNOUNCED, _PASSWORD_ALONE, _RESERVED = 0x82, 0x42, 0xC3
# In names: what brokers forbid, or take for something of their own.
_ODD = {
    "U+0001": b"\x01",
    "U+007F": b"\x7f",
    "U+0085": "\x85".encode(),
    "U+FFFF": "\uffff".encode(),
    "a space": b" ",
    "a tabulator": b"\t",
    "a dot": b".",
    "a star": b"*",
    "a greater-than": b">",
    "a plus": b"+",
}


def poisons() -> Iterator[Attack]:
    yield _poison("MQTT 3.1", connect(3, ANYBODY.decode(), _PASSWORD, name=b"MQIsdp"))
    yield _poison("3.1 by the name of 3.1.1", connect(3, ANYBODY.decode(), _PASSWORD))
    yield _poison("3.1.1 by the name of 3.1", connect(4, ANYBODY.decode(), _PASSWORD, name=b"MQIsdp"))
    yield _poison("a bridge", connect(0x84, ANYBODY.decode(), _PASSWORD))
    for version in (4, 5):
        for name, odd in _ODD.items():
            yield _poison(f"client id with {name}", _connect(version, client_id=ANYBODY + odd), version)
            yield _poison(f"will topic with {name}", _willing(version, OWN_TOPIC + b"/a" + odd + b"b"), version)
        yield _poison("will on no topic", _willing(version, b""), version)
        yield _poison("will on a topic of the broker", _willing(version, b"$SYS/" + ANYBODY), version)
        yield _poison("will that stays, at QoS 2", _willing(version, OWN_TOPIC, flags=_WILL_QOS_2_RETAINED), version)
        yield _poison("large will", _willing(version, OWN_TOPIC, payload=bytes(60_000)), version)
        yield _poison("user with U+0001", _connect(version, user=ODD_USER, client_id=ODD_USER), version, ODD_USER)
        yield _poison("long user", _connect(version, user=LONG_USER, client_id=LONG_USER), version, LONG_USER)
        yield _poison("long client id", _connect(version, client_id=ANYBODY + b"x" * 60_000), version)
        yield _poison("no client id, and to be kept", _connect(version, client_id=b"", flags=_NOT_CLEAN), version)
        yield _poison("reserved flag", _connect(version, flags=_RESERVED), version)
        yield _poison("a password, and no user announced", _connect(version, flags=_PASSWORD_ALONE), version)
        yield _poison("a user, and no password announced", _connect(version, flags=_NO_PASSWORD_BUT_ANNOUNCED), version)


def _poison(name: str, sends: bytes, version: int = 4, user: bytes = ANYBODY) -> Attack:
    shown = {4: "", 5: " (5)"}[version]
    return Attack(name=name + shown, version=version, sends=sends, user=user, ends="either", within_s=STAYS_S)


def _connect(
    version: int, *, user: bytes = ANYBODY, client_id: bytes = ANYBODY, flags: int = 0xC2, will: bytes = b""
) -> bytes:
    return connect(version, user.decode(), _PASSWORD, client_id=client_id, flags=flags, will=will)


def _willing(version: int, topic: bytes, *, flags: int = _WILL, payload: bytes = b"gone") -> bytes:
    return _connect(version, flags=flags, will=(b"\0" if version == 5 else b"") + text(topic) + text(payload))
