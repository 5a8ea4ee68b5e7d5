"""Absent MQTT sessions on real brokers: what keeps too much is ended and named, and nobody else notices."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from support.bus import ControlBus
from support.clients import Client, connected
from support.log import Log
from support.waiting import until

from tidegate.brokers.nats import session_quotas
from tidegate.brokers.nats.embedded import EmbeddedBrokers
from tidegate.brokers.nats.session_quotas import NatsSessionQuotas, is_connected
from tidegate.brokers.nats.session_records import delete_record, read_record, session_of
from tidegate.brokers.sessions import SessionBounds
from tidegate.brokers.settings import BrokerSettings
from tidegate.bus.documents import UP_ALARMS
from tidegate.bus.jetstream import ask
from tidegate.bus.wire import Wire
from tidegate.local.chain import Chain
from tidegate.model.installation import Installation
from tidegate.settings.tree import Settings

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]
MESSAGES_MAX = 200
MANY = 1 << 40
LOOSE = SessionBounds(
    messages_max=MANY, bytes_max=MANY, bytes_in_all_max=MANY, subscriptions_in_all_max=MANY, age_s_max=1e9
)
STRICT = SessionBounds(messages_max=1, bytes_max=1, bytes_in_all_max=1, subscriptions_in_all_max=1, age_s_max=0.001)


@pytest.fixture(scope="module", params=[1, 3], ids=["one broker", "three brokers"])
def here(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    settings = BrokerSettings(nodes=request.param, slices=2)
    with EmbeddedBrokers(tmp_path_factory.mktemp("quotas"), settings) as running:
        assert running.installation is not None
        yield running.installation


@pytest.fixture
def log(here: Installation) -> Iterator[Log]:
    with Log(here) as opened:
        yield opened


@pytest.fixture(autouse=True)
def _at_every_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_quotas, "LOOK_S", 0.0)


def quotas(here: Installation, bounds: SessionBounds) -> NatsSessionQuotas:
    return NatsSessionQuotas(Wire(here.data_urls), here.monitor_urls, bounds)


def leave(here: Installation, name: str, *filters: tuple[str, int]) -> None:
    with connected(here, name, clean=False) as client:
        client.subscribed(*filters)


def stored(log: Log, stream: str) -> int:
    return int(ask(log.wire, f"STREAM.INFO.{stream}")["state"]["messages"])


def send(client: Client, topic: str, count: int, payload: bytes = b"{}") -> None:
    for sent in [client.publish(f"{topic}/{number % 5}", payload, qos=1) for number in range(count)]:
        sent.wait_for_publish(20)


def test_a_session_that_fills_is_ended_and_telemetry_and_others_lose_nothing(here: Installation, log: Log) -> None:
    """It has subscriptions at QoS 2 as well, whose own consumer goes, too."""
    watched = quotas(here, replace(LOOSE, messages_max=MESSAGES_MAX))
    leave(here, "hoarder", ("telemetry/#", 1), ("orders/+", 2))
    leave(here, "modest", ("telemetry/4", 1))
    before = log.count()
    with connected(here, "present", clean=False) as present, connected(here, "fleet") as fleet:
        present.subscribed(("telemetry/#", 1))
        send(fleet, "telemetry", 100)
        until(lambda: log.count() == before + 100)
        assert watched.check() is None, "within its bounds"
        send(fleet, "telemetry", 150)
        until(lambda: watched.check() is not None)
        alarm = watched.check()
        assert alarm is not None
        assert "1 absent MQTT session was ended, the last that of client 'hoarder'" in alarm
        assert "(subscription 'telemetry/#'), which kept 250 messages (setting session_messages_max)" in alarm
        until(lambda: log.count() == before + 250)
        until(lambda: len(present.heard) == 250)
        assert (watched.ended, present.presents) == (1, [False])
    until(lambda: stored(log, "$MQTT_msgs") == 50, 40)
    names = ask(log.wire, "CONSUMER.NAMES.$MQTT_out")["consumers"] or []
    assert names == []
    with connected(here, "modest", clean=False) as modest:
        until(lambda: len(modest.heard) == 50)
        assert modest.presents == [True]
    with connected(here, "hoarder", clean=False) as back, connected(here, "fleet") as fleet:
        assert back.presents == [False]
        back.subscribed(("telemetry/#", 1), ("orders/+", 2))
        fleet.published("telemetry/4", b"again")
        fleet.published("orders/1", b"twice", 2)
        until(lambda: sorted(back.payloads) == [b"again", b"twice"])
    for name in ("hoarder", "modest", "present"):
        with connected(here, name):
            pass
    until(lambda: stored(log, "$MQTT_msgs") == 0, 40)
    watched.close()


def test_few_large_messages_are_as_bad_and_age_ends_what_is_small(here: Installation, log: Log) -> None:
    leave(here, "large", ("large/#", 1))
    leave(here, "small", ("small/#", 1))
    with connected(here, "source") as source:
        send(source, "large", 20, bytes(50_000))
        send(source, "small", 400)
    watched = quotas(here, replace(LOOSE, bytes_max=500_000))
    until(lambda: "client 'large'" in (watched.check() or ""))
    assert "about 1.0 MB in 20 messages (setting session_bytes_max)" in (watched.check() or "")
    until(lambda: stored(log, "$MQTT_msgs") == 400)
    watched.close()
    time.sleep(1.0)
    aged = quotas(here, replace(LOOSE, age_s_max=1.0))
    until(lambda: "client 'small'" in (aged.check() or ""))
    until(lambda: stored(log, "$MQTT_msgs") == 0)
    aged.close()


def test_a_connected_session_is_never_ended_however_much_it_keeps(here: Installation, log: Log) -> None:
    """It reads nothing: the broker waits for its acknowledgements, and keeps the rest."""
    watched = quotas(here, STRICT)
    with connected(here, "slow", clean=False) as slow, connected(here, "source") as source:
        slow.manual_ack_set(True)
        slow.subscribed(("slow/#", 1))
        send(source, "slow", 2_000)
        for _ in range(5):
            assert watched.check() is None
        assert is_connected(here.monitor_urls, "slow") is True
    until(lambda: "client 'slow'" in (watched.check() or ""))
    until(lambda: stored(log, "$MQTT_msgs") == 0)
    assert is_connected(here.monitor_urls, "slow") is False
    watched.close()


def test_where_a_broker_does_not_answer_nobody_is_taken_for_absent(here: Installation) -> None:
    assert is_connected((*here.monitor_urls, "http://127.0.0.1:1"), "anybody") is None


def test_up_looks_after_sessions_and_says_which_it_ended(tmp_path: Path) -> None:
    said: list[str] = []
    settings = Settings(broker=BrokerSettings(slices=1, session_messages_max=10))
    with Chain(tmp_path, settings, said.append, nodes=0) as chain:
        here = chain.start_brokers()
        leave(here, "away", ("a/#", 1))
        with connected(here, "source") as source:
            send(source, "a", 11)

        def alarms() -> list[str]:
            chain.watch()
            with ControlBus(here) as bus:
                return bus.get(UP_ALARMS) or []

        until(lambda: any("client 'away'" in alarm for alarm in alarms()))
        assert [line for line in said if line.startswith("ALARM: 1 absent MQTT session was ended")] != []


def test_a_client_that_comes_back_meanwhile_keeps_everything(here: Installation, log: Log) -> None:
    leave(here, "returning", ("returning/#", 1))
    with connected(here, "source") as source:
        send(source, "returning", 10)
    (name,) = {
        session_of(one) for one in ask(log.wire, "CONSUMER.NAMES.$MQTT_msgs")["consumers"] if "JS_SRC" not in one
    }
    record = read_record(log.wire, name)
    assert record is not None
    assert (record.client, len(record.consumers)) == ("returning", 2)
    with connected(here, "returning", clean=False) as back:
        until(lambda: len(back.heard) == 10)
        assert not delete_record(log.wire, record)
        with connected(here, "source") as source:
            send(source, "returning", 10)
        until(lambda: len(back.heard) == 20)
    with connected(here, "returning"):
        pass


def test_consumers_that_are_no_session_are_never_touched(here: Installation, log: Log) -> None:
    """What slices source through, and what an operator made."""
    ask(
        log.wire,
        "CONSUMER.DURABLE.CREATE.$MQTT_msgs.mine_own",
        {
            "stream_name": "$MQTT_msgs",
            "config": {"durable_name": "mine_own", "ack_policy": "explicit", "filter_subject": "$MQTT.msgs.mine.>"},
        },
    )
    before = sorted(ask(log.wire, "CONSUMER.NAMES.$MQTT_msgs")["consumers"])
    with connected(here, "source") as source:
        send(source, "mine", 10)
    watched = quotas(here, STRICT)
    for _ in range(3):
        assert watched.check() is None
    watched.close()
    assert sorted(ask(log.wire, "CONSUMER.NAMES.$MQTT_msgs")["consumers"]) == before
    assert any("JS_SRC" in name for name in before)
    ask(log.wire, "CONSUMER.DELETE.$MQTT_msgs.mine_own")


def test_a_session_without_messages_or_subscriptions_expires_too(here: Installation, log: Log) -> None:
    """One that is connected for as long does not, and one that has just come back neither."""
    watched = quotas(here, replace(LOOSE, age_s_max=1.0))
    with connected(here, "publishes-only", clean=False), connected(here, "stays", clean=False):
        until_s = time.monotonic() + 2.5
        until(lambda: watched.check() is not None or time.monotonic() > until_s)
        assert watched.ended == 0, "both are connected"
    with connected(here, "stays", clean=False):
        until(lambda: "client 'publishes-only', which kept its place for" in (watched.check() or ""))
        assert watched.ended == 1
    for name, is_there in (("publishes-only", False), ("stays", True)):
        with connected(here, name, clean=False) as client:
            assert client.presents == [is_there]
        with connected(here, name):
            pass
    until(lambda: stored(log, "$MQTT_sess") == 0)
    watched.close()


def test_subscriptions_of_absent_sessions_leave_room_for_others(here: Installation) -> None:
    leave(here, "collector", *((f"c/{number}", 1) for number in range(20)))
    leave(here, "other", ("c/1", 1))
    watched = quotas(here, replace(LOOSE, subscriptions_in_all_max=10))
    until(lambda: "client 'collector'" in (watched.check() or ""))
    assert "kept 20 of the 21 subscriptions that absent sessions have together" in (watched.check() or "")
    with connected(here, "other", clean=False) as other:
        assert other.presents == [True]
    with connected(here, "other"):
        pass
    watched.close()
