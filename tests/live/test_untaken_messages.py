"""What stays in the brokers although no slice can take it, or none has to any more: removed, or told by name."""

from collections.abc import Iterator

import pytest
from support.clients import connected
from support.log import Log
from support.waiting import until

from tidegate.brokers.nats import sessions
from tidegate.brokers.nats.backlog import measure
from tidegate.brokers.nats.disk_guard import NatsDiskGuard
from tidegate.brokers.nats.embedded import EmbeddedBrokers
from tidegate.brokers.opening import address_of_log, open_log
from tidegate.brokers.port import SliceRange
from tidegate.brokers.settings import BrokerSettings
from tidegate.bus.jetstream import ask

pytestmark = pytest.mark.live
SLICES = 2
WILD = (
    "telemetry/*",
    "telemetry/>",
    "telemetry/d/>",
    "telemetry/d/*/x",
    "telemetry/>/x",
    "telemetry/>/*",
    "telemetry/*//x",
)


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBrokers]:
    with EmbeddedBrokers(tmp_path_factory.mktemp("untaken"), BrokerSettings(slices=SLICES)) as running:
        yield running


@pytest.fixture(scope="module")
def log(brokers: EmbeddedBrokers) -> Iterator[Log]:
    assert brokers.installation is not None
    with Log(brokers.installation) as opened:
        yield opened


@pytest.fixture(scope="module")
def guard(brokers: EmbeddedBrokers) -> Iterator[NatsDiskGuard]:
    opened = brokers.disk_guard()
    yield opened
    opened.close()


def held(log: Log, stream: str) -> int:
    return int(ask(log.wire, f"STREAM.INFO.{stream}")["state"]["messages"])


def test_messages_that_no_slice_can_take_are_named_and_removed(
    brokers: EmbeddedBrokers, log: Log, guard: NatsDiskGuard
) -> None:
    here = brokers.installation
    assert here is not None
    before = log.count()
    assert guard.check().removed is None
    with connected(here, "wild") as device:
        for round_ in range(20):
            for topic in WILD:
                device.published(topic, b"%d" % round_)
            device.published(f"telemetry/good-{round_}", b"{}")
    until(lambda: log.count() == before + 20)
    until(lambda: held(log, "INGEST") + held(log, "$MQTT_msgs") == 20 * len(WILD))
    found = measure(log.wire, SLICES, log.ends())
    (warning,) = found.warnings
    assert (found.alarms, found.waiting) == ((), 0)  # the check of what was acknowledged goes on
    assert "no slice can take, the first on the topic 'telemetry/*'" in warning

    until(lambda: bool(guard.check().removed) and held(log, "INGEST") + held(log, "$MQTT_msgs") == 0)
    assert log.count() == before + 20
    assert measure(log.wire, SLICES, log.ends()).warnings == ()
    state = guard.check()
    assert state.alarm is None
    assert "acknowledged messages were removed" in (state.removed or "")


def test_what_a_slice_takes_is_never_removed(brokers: EmbeddedBrokers, log: Log, guard: NatsDiskGuard) -> None:
    """A session that is away keeps messages at the head of the stream, where strays are looked for."""
    here = brokers.installation
    assert here is not None
    with connected(here, "away", clean=False) as away:
        away.subscribed(("telemetry/#", 1))
    with connected(here, "wild") as device:
        device.published("telemetry/a*b", b"kept")
        device.published("telemetry/>/x", b"stray")
        device.published("telemetry/c", b"kept too")
    until(lambda: guard.check() is not None and held(log, "$MQTT_msgs") == 2)
    with connected(here, "away", clean=False) as away:
        until(lambda: sorted(away.payloads) == [b"kept", b"kept too"])
    with connected(here, "away"):
        pass
    until(lambda: held(log, "$MQTT_msgs") == 0)


def test_a_session_that_keeps_messages_for_ever_is_named(
    brokers: EmbeddedBrokers, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "KEPT_MIN", 100)
    here = brokers.installation
    assert here is not None
    for name, topic in (("forgotten", "telemetry/#"), ("small", "telemetry/f-1/+")):
        with connected(here, name, clean=False) as client:
            client.subscribed((topic, 1))
    before = log.count()
    with connected(here, "source") as device:
        for number in range(150):
            device.published(f"telemetry/f-{number % 3}", b"{}")
        device.published("telemetry/f-1/x", b"{}")
    until(lambda: log.count() == before + 151)
    look = sessions.Sessions()

    def warnings() -> tuple[str, ...]:
        found = measure(log.wire, SLICES, log.ends(), sessions=look)
        assert (found.alarms, found.waiting) == ((), 0)
        return found.warnings

    until(lambda: bool(warnings()))
    (warning,) = warnings()
    assert "about 150 messages" in warning
    assert "client 'forgotten' (not connected, subscription 'telemetry/#'" in warning
    with connected(here, "forgotten"):  # the remedy
        pass
    until(lambda: warnings() == ())
    with connected(here, "small"):
        pass
    until(lambda: held(log, "$MQTT_msgs") == 0)


@pytest.mark.parametrize(
    "topic", ["telemetry/a//b", "telemetry/a/", "telemetry/a.b//.c", "telemetry//x", "telemetry/.."]
)
def test_the_log_gives_topics_back_as_they_were_published(brokers: EmbeddedBrokers, log: Log, topic: str) -> None:
    here = brokers.installation
    assert here is not None
    before = log.ends()
    with connected(here, "strange") as device:
        device.published(topic, b"{}")
    until(lambda: log.count() == sum(before.values()) + 1)
    ends = log.ends()
    (grown,) = [number for number in ends if ends[number] > before[number]]
    reader = open_log(address_of_log(here), name="strange")
    rows = list(reader.read([SliceRange(grown, before[grown], ends[grown])]))
    reader.close()
    assert [name for row in rows for name in row.topics.to_pylist()] == [topic]
