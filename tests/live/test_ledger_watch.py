"""What a running system knows of itself: real gateway, brokers and nodes, and a broker that loses readings."""

import contextlib
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from support.credentials import settled
from support.gateways import DERIVED_TOO, Running
from support.processes import tidegate
from support.readings import own, post
from support.rigs import table
from support.waiting import until

from tidegate.brokers.nats.backlog import _sourcing_consumers
from tidegate.brokers.nats.ingest import MQTT_STREAM
from tidegate.brokers.opening import address_of_log, open_log
from tidegate.bus.documents import COMPLETENESS
from tidegate.bus.jetstream import ask
from tidegate.bus.wire import Wire
from tidegate.controller.sensors import Sensors
from tidegate.gateway import ledger_reports
from tidegate.gateway.settings import GatewaySettings
from tidegate.model.ledger import CompletenessState
from tidegate.pipeline.completeness.book import CONFIRM_S
from tidegate.pipeline.completeness.checker import Completeness
from tidegate_bench.rig.installation import Rig

SETTLED_S_MAX = 90.0  # Spark's first batch takes its time, on a machine with other work

pytestmark = [pytest.mark.live, pytest.mark.timeout(180)]


@pytest.fixture
def gateway(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    """One that reports every half second."""
    monkeypatch.setattr(ledger_reports, "REPORT_S", 0.5)
    settled(rig.installation, rig.state)
    with Running(rig.installation, GatewaySettings(name="ledger-gateway"), identity=DERIVED_TOO) as running:
        running.wait_for_keys()
        yield running


class Check:
    """The check, whose steps have their time without the test having to wait for it."""

    def __init__(self, rig: Rig) -> None:
        self._completeness = Completeness(rig.installation, name="test")
        self._now_s = time.time()

    def step(self) -> CompletenessState:
        self._now_s += CONFIRM_S
        assert self._completeness.step(self._now_s)
        assert self._completeness.state is not None
        return self._completeness.state

    def settled(self, running: Running) -> CompletenessState:
        """When it is known what became of all that the gateway has acknowledged."""
        until(lambda: running.state.ledger.reported == running.state.ledger.noted)
        deadline_s = time.monotonic() + SETTLED_S_MAX
        state = self.step()
        while state.oldest_s is not None or state.reports_behind:
            assert time.monotonic() < deadline_s, msgspec.json.encode(state)
            time.sleep(0.2)
            state = self.step()
        return state

    def stop(self) -> None:
        self._completeness.stop(self._now_s)


@pytest.fixture
def check(rig: Rig) -> Iterator[Check]:
    check = Check(rig)
    yield check
    check.stop()


@contextlib.contextmanager
def paused(rig: Rig) -> Iterator[Wire]:
    """What brokers acknowledge stays where it is acknowledged, on its way to nowhere."""
    with Wire(rig.installation.data_urls) as wire:
        names = [info["name"] for info in _sourcing_consumers(wire, MQTT_STREAM).values()]
        later = datetime.now(UTC) + timedelta(seconds=60)
        for name in names:
            ask(wire, f"CONSUMER.PAUSE.{MQTT_STREAM}.{name}", {"pause_until": later.isoformat()})
        try:
            yield wire
        finally:
            for name in names:
                ask(wire, f"CONSUMER.PAUSE.{MQTT_STREAM}.{name}", {})


def reading(seq: int, boot: int = 1) -> bytes:
    return json.dumps({"boot": boot, "seq": seq, "value": seq}).encode()


def total(state: CompletenessState, name: str) -> int:
    return sum(getattr(hour, name) for hour in state.hours)


def test_without_a_fault_everything_acknowledged_is_accounted_for(rig: Rig, gateway: Running, check: Check) -> None:
    before = check.settled(gateway)
    with gateway.client("ledger-1") as old, gateway.client("ledger-2", version=5) as new:
        for seq in range(200):
            (old if seq % 2 else new).publish(f"telemetry/ledger.a{seq % 5}", reading(seq), 1 + seq % 2)
        for boot in (7, 3, 7):
            old.published("telemetry/ledger-b/deeper", reading(boot * 10, boot))
        old.published("telemetry/ledger-b", b'{"boot":1,"seq":5,"value":"warm"}')
        old.published("telemetry/ledger-b", b'{"value":5}')
        until(lambda: gateway.state.ledger.noted + gateway.state.ledger.nameless == 205)
    assert post(gateway.http, "ledger-c", own(gateway.here, "ledger-c"), reading(1)).status == 204
    after = check.settled(gateway)
    counted = {name: total(after, name) - total(before, name) for name in ("acknowledged", "stored", "rejected")}
    # One identity was acknowledged twice: once or twice, as it fell into one report or two.
    assert counted["stored"] + counted["rejected"] == counted["acknowledged"] >= 204
    assert counted["rejected"] == 1
    assert total(after, "nameless") - total(before, "nameless") == 1
    assert (after.holes, total(after, "missing")) == (before.holes, total(before, "missing"))
    assert (total(after, "waiting"), after.reports_lost) == (0, 0)
    log = open_log(address_of_log(rig.installation))
    stored = table(rig, "readings").select(["device", "slice"]).to_pylist()
    assert all(log.slice_of(row["device"]) == row["slice"] for row in stored), "the brokers' own function"
    log.close()


def test_a_reading_that_the_broker_lost_is_named(rig: Rig, gateway: Running, check: Check) -> None:
    before = check.settled(gateway)
    with gateway.client("ledger-3") as client, paused(rig) as wire:
        for seq in range(10):
            client.published("telemetry/ledger-lost", reading(seq))
        last = int(ask(wire, f"STREAM.INFO.{MQTT_STREAM}")["state"]["last_seq"])
        until(lambda: gateway.state.ledger.reported == gateway.state.ledger.noted)
        for _ in range(4):
            state = check.step()
        assert state.holes == before.holes, "what waits in the brokers is late, not lost"
        assert total(state, "waiting") == 10
        for sequence in (last - 6, last - 5):
            assert ask(wire, f"STREAM.MSG.DELETE.{MQTT_STREAM}", {"seq": sequence})["success"]
    state = check.settled(gateway)
    (hole,) = [hole for hole in state.holes if hole not in before.holes]
    assert (hole.device, hole.boot, hole.low, hole.high, hole.gateway) == ("ledger-lost", 1, 3, 4, "ledger-gateway")
    assert abs(hole.until_s - time.time()) < 60
    assert hole.seen.startswith(f"not in the log of slice {hole.slice}")
    assert total(state, "missing") - total(before, "missing") == 2
    assert any("device ledger-lost, boot 1, seq 3 to 4" in alarm for alarm in state.alarms)
    assert rig.bus.get(COMPLETENESS) == state
    sensors = Sensors(rig.installation, name="ledger-test")
    seen = sensors.observe(())
    sensors.close()
    assert seen.completeness == state
    assert set(state.alarms) <= set(seen.alarms)
    check.stop()
    done = tidegate("ledger", "watch", "--once", "--json", "--state", str(rig.state))
    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout)["checks"][0]["value"] == total(state, "missing")
