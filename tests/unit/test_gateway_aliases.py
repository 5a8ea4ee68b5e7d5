"""Topic aliases of MQTT 5 where publishes may overtake each other: each comes under the topic it was sent under."""

from tidegate.control.limiting.credits import ClientCredits
from tidegate.gateway.connection.advising import AdviceInForce
from tidegate.gateway.connection.connect_plan import Limits
from tidegate.gateway.connection.holding import Hold
from tidegate.gateway.connection.passing import Passing, TopicRules
from tidegate.gateway.connection.session import Session
from tidegate.gateway.identity.rights import ANYTHING
from tidegate.gateway.shared.classes import Classes
from tidegate.gateway.shared.counting import Counters
from tidegate.model.advice import Advice
from tidegate.model.classes import DeviceClass
from tidegate.mqtt import properties
from tidegate.mqtt.frames import frames_of
from tidegate.mqtt.packets import Connack, Publish, encode, parse
from tidegate.mqtt.properties import Properties

LIMITS = Limits(packet_bytes_max=10_000, topic_bytes_max=4_096, properties_max=64, keep_alive_s_max=65_535)
CLASSES = (DeviceClass(name="alarm", topics=("alarm/#",), never_delay=True), DeviceClass(name="meter", topics=("#",)))


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def flooded(clock: Clock) -> Session:
    """A device that may send once in ten seconds, on a broker that speaks MQTT 5."""
    advice, counters = AdviceInForce(clock), Counters()
    passing = Passing(
        Hold(ClientCredits(50_000, 10_000, 0.0), bytes_max=65_536, hold_s_max=300.0),
        TopicRules(CLASSES),
        Classes(CLASSES, counters),
        advice,
        counters,
        enforces=True,
        version=5,
        tells_quota=False,
    )
    session = Session(5, LIMITS, advice, passing, ANYTHING)
    advice.renew(Advice(interval_s=10.0, lifetime_s=600.0), 1)
    announced = Properties(values={properties.TOPIC_ALIAS_MAX: 10})
    session.from_broker(encode(Connack(session_present=False, code=0, properties=announced), 5))
    return session


def aliased(topic: bytes, alias: int, payload: bytes) -> bytes:
    said = Properties(values={properties.TOPIC_ALIAS: alias})
    return encode(Publish(topic=topic, payload=payload, qos=0, properties=said), 5)


def told(data: bytes) -> list[tuple[bytes, bytes, bool]]:
    """Topic, payload, and whether the broker is shown an alias."""
    found = []
    for first, body, end in frames_of(data):
        packet = parse(first, data[body:end], 5, properties_max=64)
        assert isinstance(packet, Publish)
        found.append((packet.topic, packet.payload, properties.TOPIC_ALIAS in packet.properties.values))
    return found


def test_a_publish_that_waits_keeps_its_topic_when_its_alias_is_given_to_another() -> None:
    clock = Clock()
    session = flooded(clock)
    sent = [
        aliased(b"meter/1", 1, b"%d" % number) if number == 0 else aliased(b"", 1, b"%d" % number)
        for number in range(8)
    ]
    now = told(session.from_device(b"".join(sent), clock.now_s))
    now += told(session.from_device(aliased(b"alarm/1", 1, b"fire") + aliased(b"", 1, b"smoke"), clock.now_s))
    later = []
    for _ in range(30):
        clock.now_s += 10.0
        later += told(session.released(clock.now_s))
    waited = [payload for _, payload, _ in later]
    assert waited, "some had to wait"
    assert {topic for topic, payload, _ in now + later if payload in (b"fire", b"smoke")} == {b"alarm/1"}
    assert {topic for topic, payload, _ in now + later if payload.isdigit()} == {b"meter/1"}
    assert [payload for _, payload, _ in now + later if payload.isdigit()] == [b"%d" % number for number in range(8)]
    assert not any(shown for _, _, shown in now + later)
