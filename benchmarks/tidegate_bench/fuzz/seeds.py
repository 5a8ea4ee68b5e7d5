"""Where fuzzing starts from: a valid packet of every kind and version, wrapped as a case for every target."""

from tidegate.model.advice import ADVICE_TOPIC
from tidegate.mqtt import packets, properties
from tidegate.mqtt.frames import frames_of
from tidegate.mqtt.packets import Packet, encode
from tidegate.mqtt.properties import Properties
from tidegate_bench.fuzz.targets import FROM_BROKER, VERSIONS

_CUTS = (0, 255)
_USER = Properties(user=((b"name", b"value"),))
_REASON = Properties(values={properties.REASON_STRING: b"because"}, user=((b"name", b"value"),))
_METHOD = Properties(values={properties.AUTHENTICATION_METHOD: b"m", properties.AUTHENTICATION_DATA: b"d"})
_MESSAGE = Properties(
    values={
        properties.PAYLOAD_FORMAT: 1,
        properties.MESSAGE_EXPIRY: 60,
        properties.CONTENT_TYPE: b"text",
        properties.RESPONSE_TOPIC: b"answers",
        properties.CORRELATION_DATA: b"\x00\x01",
    },
    user=((b"name", b"value"), (b"name", b"other")),
)
_ALIAS = Properties(values={properties.TOPIC_ALIAS: 1})
_SESSION = Properties(
    values={
        properties.SESSION_EXPIRY: 60,
        properties.RECEIVE_MAX: 10,
        properties.PACKET_BYTES_MAX: 1_000,
        properties.TOPIC_ALIAS_MAX: 5,
        properties.REQUEST_PROBLEM_INFORMATION: 1,
        properties.REQUEST_RESPONSE_INFORMATION: 0,
    }
)
_SERVER = Properties(
    values={
        properties.QOS_MAX: 1,
        properties.RETAIN_AVAILABLE: 1,
        properties.ASSIGNED_CLIENT_ID: b"d",
        properties.SERVER_KEEP_ALIVE: 30,
        properties.WILDCARDS_AVAILABLE: 1,
        properties.SUBSCRIPTION_IDENTIFIERS_AVAILABLE: 0,
        properties.SHARED_AVAILABLE: 0,
        properties.RESPONSE_INFORMATION: b"r",
        properties.SERVER_REFERENCE: b"s",
    }
)


def connects(version: int) -> list[Packet]:
    will = packets.Will(
        topic=b"wills/d",
        payload=b"gone",
        qos=1,
        retain=True,
        properties=Properties(values={**_MESSAGE.values, properties.WILL_DELAY: 5}),
    )
    return [
        packets.Connect(version=version, client_id=b"d", clean=True, keep_alive_s=60),
        packets.Connect(version=version, client_id=b"d", clean=False, keep_alive_s=0, properties=_SESSION),
        packets.Connect(
            version=version,
            client_id=b"d",
            clean=True,
            keep_alive_s=60,
            will=will,
            user=b"user",
            password=b"pass",
            properties=_METHOD,
        ),
    ]


def of_device(version: int) -> list[Packet]:
    advice = ADVICE_TOPIC.encode()
    found: list[Packet] = [
        packets.Publish(topic=b"telemetry/d", payload=b"1"),
        packets.Publish(topic=b"telemetry/d", payload=b"1", qos=1, packet_id=1, properties=_MESSAGE),
        packets.Publish(topic=b"telemetry/d", payload=b"1", qos=2, packet_id=2, retain=True, duplicate=True),
        *(packets.Ack(kind=kind, packet_id=1, properties=_REASON) for kind in (0x40, 0x50, 0x60, 0x70)),
        packets.Subscribe(packet_id=3, entries=((b"a/+/#", 1), (advice, 0)), properties=_USER),
        packets.Subscribe(packet_id=4, entries=((advice, 0),)),
        packets.Unsubscribe(packet_id=5, filters=(b"a/+/#", advice), properties=_USER),
        packets.Ping(),
        packets.Disconnect(properties=_REASON),
    ]
    if version == 5:
        found += [
            packets.Publish(topic=b"telemetry/d", payload=b"1", qos=1, packet_id=6, properties=_ALIAS),
            packets.Publish(topic=b"", payload=b"1", qos=1, packet_id=7, properties=_ALIAS),
            packets.Subscribe(packet_id=8, entries=((b"$share/g/a", 0x2A),), properties=Properties(identifiers=(1,))),
            packets.Auth(code=0x18, properties=_METHOD),
        ]
    return found


def of_broker(version: int) -> list[Packet]:
    return [
        packets.Connack(session_present=False, code=0, properties=_SERVER),
        packets.Publish(topic=b"commands/d", payload=b"1", qos=1, packet_id=1, properties=_MESSAGE),
        packets.Suback(packet_id=3, codes=b"\x01\x80", properties=_REASON),
        packets.Unsuback(packet_id=5, codes=b"\x00\x11", properties=_REASON),
        packets.Pong(),
        packets.Disconnect(code=0x8B if version == 5 else 0, properties=_REASON),
    ]


def seeds() -> list[bytes]:
    found = []
    for number, version in enumerate(VERSIONS):
        opened = [encode(packet, version) for packet in connects(version)]
        up = [encode(packet, version) for packet in of_device(version)]
        down = [encode(packet, version) for packet in of_broker(version)]
        talk = [_piece(packet, 0) for packet in up] + [_piece(packet, FROM_BROKER) for packet in down]
        for cut in _CUTS:
            found += [bytes((0, number, 1, cut)) + packet for packet in (*up, b"".join(up))]
            found += [bytes((0, number, 0, cut)) + packet for packet in (*down, b"".join(down))]
            found += [bytes((1, number, 0, cut)) + packet for packet in opened]
        for packet in (*opened, *up, *down):
            ((first, body, _),) = frames_of(packet)
            found.append(bytes((2, number, 0, 0, first)) + packet[body:])
        for target in (3, 4):
            found += [bytes((target, number, 0, 0)) + piece for piece in (*talk, b"".join(talk))]
        found += _connections(number, version, opened[0], talk)
    return found


def _connections(number: int, version: int, opened: bytes, talk: list[bytes]) -> list[bytes]:
    """Whole connections: accepted in the device's own version, or by a broker of 3.1.1; then all the rest."""
    begins = {
        flaws: _piece(opened, 0) + _piece(encode(packets.Connack(session_present=False, code=0), accepted), FROM_BROKER)
        for flaws, accepted in ((1, version), (0, 4))
    }
    aside = bytes((0,))  # nothing said by the device: something happens beside the bytes
    return [
        bytes((5, number, 0, 0, flaws | flaw)) + begin + rest
        for flaws, begin in begins.items()
        for flaw in (0, 4, 8, 16)
        for rest in (b"", b"".join(talk[:6]) + aside, b"".join(talk))
    ]


def _piece(packet: bytes, side: int) -> bytes:
    return b"".join(
        bytes((side | len(part),)) + part
        for part in (packet[place : place + 127] for place in range(0, len(packet), 127))
    )
