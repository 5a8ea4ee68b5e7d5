"""An MQTT 5 client on a 3.1.1 broker, for tests: packets in, packets out."""

from tidegate.gateway.connection.connect_plan import ConnectPlan, Limits, plan_connect
from tidegate.gateway.connection.translation import Translation
from tidegate.gateway.identity.rights import Rights
from tidegate.mqtt import properties as p
from tidegate.mqtt.frames import frames_of
from tidegate.mqtt.packets import (
    Ack,
    Connack,
    Connect,
    Packet,
    Publish,
    Subscribe,
    encode,
    parse,
)
from tidegate.mqtt.properties import Properties

LIMITS = Limits(
    packet_bytes_max=10_000,
    topic_bytes_max=100,
    properties_max=8,
    keep_alive_s_max=600,
    receive_max=3,
    topic_alias_max=2,
)


def client(client_id: bytes = b"pump-7", *, clean: bool = True, keep_alive_s: int = 60, **asked: int) -> Connect:
    values: dict[int, int | bytes] = {getattr(p, name.upper()): value for name, value in asked.items()}
    return Connect(
        version=5, client_id=client_id, clean=clean, keep_alive_s=keep_alive_s, properties=Properties(values=values)
    )


def plan(connect: Connect, limits: Limits = LIMITS) -> ConnectPlan:
    return plan_connect(connect, assigned=b"" if connect.client_id else b"gateway-1-42", limits=limits)


def packets_of(data: bytes, version: int) -> list[Packet]:
    found, start = [], 0
    for first, body, end in frames_of(data):
        found.append(parse(first, data[body:end], version, properties_max=64))
        start = end
    assert start == len(data)
    return found


class Held:
    """A connected client and its translation; what each side says and hears are packets."""

    def __init__(
        self,
        connect: Connect | None = None,
        *,
        limits: Limits = LIMITS,
        session_present: bool = False,
        rights: Rights | None = None,
    ):
        self.advice: list[bytes] = []
        self.translation = Translation(plan(connect or client(), limits), limits, self.take_advice, rights)
        self.connack = self.from_broker(Connack(session_present=session_present, code=0))[0]

    def take_advice(self) -> bytes:
        return self.advice.pop() if self.advice else b""

    def from_device(self, *packets: Packet) -> list[Packet]:
        return packets_of(self.translation.received(b"".join(encode(each, 5) for each in packets)), 4)

    def from_broker(self, *packets: Packet, version: int = 4) -> list[Packet]:
        return packets_of(self.translation.wrap(b"".join(encode(each, version) for each in packets)), 5)

    def answers(self) -> list[Packet]:
        return packets_of(self.translation.answer(), 5)

    def answers_upstream(self) -> list[Packet]:
        return packets_of(self.translation.answer_upstream(), 4)

    @property
    def problem(self) -> tuple[str, int]:
        return self.translation.problem, self.translation.code


def publish(topic: bytes = b"a", payload: bytes = b"1", *, packet_id: int = 0, qos: int | None = None, **rest: object):
    qos = qos if qos is not None else int(packet_id > 0)
    return Publish(topic=topic, payload=payload, qos=qos, packet_id=packet_id, **rest)


def aliased(topic: bytes, alias: int) -> Publish:
    return publish(topic, properties=Properties(values={p.TOPIC_ALIAS: alias}))


def ack(kind: int, packet_id: int, code: int = 0) -> Ack:
    return Ack(kind=kind, packet_id=packet_id, code=code)


def subscribe(packet_id: int, *entries: tuple[bytes, int]) -> Subscribe:
    return Subscribe(packet_id=packet_id, entries=entries)
