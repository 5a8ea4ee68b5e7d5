"""Controllers against real brokers: an overload, a dead leader, a broker that does not answer, an operator."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from support.bus import ControlBus
from support.clients import publish_all
from support.log import Log
from support.processes import TIDEGATE
from support.waiting import until, until_async

from tidegate.brokers.nats.embedded import EmbeddedBrokers
from tidegate.brokers.settings import BrokerSettings
from tidegate.bus.leader import LEADER_KEY, LeaderLease
from tidegate.cli import explain as commands
from tidegate.controller.sensors import Sensors
from tidegate.controller.server import Controller
from tidegate.controller.settings import ControllerSettings
from tidegate.model.advice import ADVICE_KEY, Advice
from tidegate.model.decisions import Mode
from tidegate.model.errors import BrokerUnavailableError
from tidegate.model.installation import Installation
from tidegate.model.observations import GatewayState
from tidegate.model.routes import ROUTES_KEY, Routes

pytestmark = pytest.mark.live
SLICES = 2
QUICK = {"period_s": 0.2, "lease_s": 1.0, "window_s": 1.0, "advice_lifetime_s": 2.0, "options": {"k_recover": 3.0}}


class Site:
    """A running installation, with a gateway and a processing node that exist on paper only."""

    def __init__(self, brokers: EmbeddedBrokers, state: Path) -> None:
        assert brokers.installation is not None
        self.brokers, self.state, self.here = brokers, state, brokers.installation
        self.bus = ControlBus(self.here)
        self.log = Log(self.here)
        self.knowledge, self.audit = self.bus.knowledge, self.bus.audit
        gateway = GatewayState(
            name="g", address="127.0.0.1:1", measured_at_s=0, connections=40, publishes=0, acknowledged=0, advised=0
        )
        self.knowledge.put("gateways.g", msgspec.json.encode(gateway))
        self.knowledge.put("lease.paper", b"here")
        self.commit({})

    def publish(self, count: int) -> None:
        readings = ((f"telemetry/d{number % 7}", b'{"value": 1}') for number in range(count))
        publish_all(self.here, "devices", readings)

    def commit(self, offsets: dict[int, int]) -> None:
        slices = {number: {"committed": committed, "rows": committed} for number, committed in offsets.items()}
        document = {"node": "paper", "totals": {"rows": sum(offsets.values())}, "slices": slices}
        self.knowledge.put("progress.paper", json.dumps(document).encode())

    def commit_all(self) -> None:
        self.commit(self.log.ends())

    def advice(self) -> Advice | None:
        return self.bus.read(ADVICE_KEY, Advice)

    def leader(self) -> str | None:
        entry = self.knowledge.get(LEADER_KEY)
        return json.loads(entry.value)["name"] if entry else None


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with EmbeddedBrokers(tmp_path / "state", BrokerSettings(nodes=1, slices=SLICES)) as brokers:
        running = Site(brokers, tmp_path / "state")
        yield running
        running.bus.close()
        running.log.close()


@contextlib.asynccontextmanager
async def controlling(here: Installation, **settings):
    controller, stop = Controller(here, ControllerSettings(**{**QUICK, **settings})), asyncio.Event()
    task = asyncio.create_task(controller.run(stop))
    try:
        yield controller
    finally:
        stop.set()
        await asyncio.wait_for(task, 20)


def test_an_overload_is_met_explained_and_ended(site: Site) -> None:
    async def scenario() -> Controller:
        async with controlling(site.here) as controller:
            await until_async(lambda: controller.view().now)
            await asyncio.to_thread(site.publish, 300)
            await until_async(lambda: (advice := site.advice()) and advice.interval_s > 0)
            held = controller.view()
            assert held.leader == "controller-1"
            await until_async(lambda: controller.view().now.interval_s > 0)
            assert controller.view().now.devices == 40
            site.commit_all()
            await until_async(lambda: (advice := site.advice()) and advice.interval_s == 0)
            await until_async(lambda: controller.view().now.phase == "idle")
        return controller

    controller = asyncio.run(scenario())
    decisions = [decision for decision in site.audit.last(50) if decision.action.kind == "advise"]
    assert decisions[0].phase == "protect"
    assert decisions[0].action.reason.readings["waiting"] > 50
    assert decisions[0].action.reason.rule.startswith("protect: ")
    assert decisions[0].sentence.startswith("40 devices are asked to send every")
    assert decisions[-1].sentence.startswith("Devices return to their default")
    assert all(decision.acted for decision in decisions)
    view = controller.view()
    assert view.decisions[-len(decisions) :] == tuple(decisions)
    assert [node.name for node in view.chain.nodes] == ["paper"]
    assert view.chain.brokers[0].healthy
    routes = site.bus.read(ROUTES_KEY, Routes)
    assert routes is not None
    assert (routes.brokers[0].host, routes.brokers[0].port) == site.here.mqtt_addresses[0]
    assert site.here.mqtt_password not in msgspec.json.encode(site.audit.last(50)).decode()
    assert site.leader() is None, "a controller that stops in good order lets the next one lead at once"


def test_modes_are_obeyed_and_explained(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    async def scenario() -> None:
        async with controlling(site.here) as controller:
            await controller.set_mode(Mode(send_rate="shadow"))
            await asyncio.to_thread(site.publish, 200)
            await until_async(lambda: any(not decision.acted for decision in site.audit.last(50)))
            assert site.advice() is None
            commands.freeze(site.state)
            await until_async(lambda: controller.view().mode.frozen)
            count = site.audit.last_sequence()
            await controller.set_mode(Mode(frozen=True))
            await asyncio.sleep(0.6)
            assert (site.advice(), site.audit.last_sequence()) == (None, count)
            commands.release(site.state)
            await until_async(site.advice)

    asyncio.run(scenario())
    commands.explain(site.state, last=50)
    told = capsys.readouterr().out
    assert "(not carried out)" in told
    assert "  rule       protect: min(R / N, S_default)" in told
    assert "  not taken  leave devices at 2 msg/s" in told
    commands.explain(site.state, last=1, as_json=True)
    assert len(json.loads(capsys.readouterr().out)["decisions"]) == 1


def test_a_follower_shows_what_the_leader_does_and_takes_over_at_once(site: Site) -> None:
    async def scenario() -> None:
        async with controlling(site.here, name="second") as second:
            async with controlling(site.here, name="first") as first:
                await until_async(lambda: first.view().now and second.view().now)
                leader, follower = (first, second) if site.leader() == "first" else (second, first)
                await asyncio.to_thread(site.publish, 200)
                await until_async(lambda: follower.view().now.interval_s > 0)
                shown = follower.view()
                assert shown.leader == leader.view().controller != shown.controller
                assert shown.now.phase == "protect"
                await until_async(lambda: {one.action.kind for one in follower.view().decisions} == {"route", "advise"})
                assert follower.view().decisions == site.audit.last(50)
            await until_async(lambda: second.view().leader == "second")
            revision = site.knowledge.get(ADVICE_KEY).revision
            await until_async(lambda: site.knowledge.get(ADVICE_KEY).revision > revision)

    asyncio.run(scenario())


@contextlib.contextmanager
def process(site: Site, name: str) -> Iterator[subprocess.Popen[str]]:
    command = [*TIDEGATE, "controller", "--name", name, "--state", str(site.state)]
    quick = {"PERIOD_S": "0.2", "WINDOW_S": "1", "ADVICE_LIFETIME_S": "6"}
    environment = os.environ | {f"TIDEGATE_CONTROLLER__{key}": value for key, value in quick.items()}
    with (
        (site.state / f"{name}.log").open("w") as log,
        subprocess.Popen(command, stderr=log, text=True, env=environment) as running,
    ):
        try:
            yield running
        finally:
            running.kill()


def test_a_killed_leader_is_followed_by_the_other(site: Site) -> None:
    lease_s = ControllerSettings().lease_s
    site.publish(200)
    with process(site, "one") as one:
        until(lambda: (advice := site.advice()) and advice.interval_s > 0)
        with process(site, "two") as two:
            log = site.state / "two.log"
            until(lambda: "Controller two is ready." in log.read_text())
            time.sleep(0.5)
            assert site.leader() == "one"
            assert "leads" not in log.read_text()
            before = site.knowledge.get("policy.send_rate")
            assert before is not None
            decided = site.audit.last_sequence()
            one.send_signal(signal.SIGKILL)
            one.wait()
            taken_s = until(lambda: site.leader() == "two")
            assert taken_s < lease_s + 1, f"took {taken_s:.1f} s"
            revision = site.knowledge.get(ADVICE_KEY).revision
            until(lambda: site.knowledge.get(ADVICE_KEY).revision > revision)
            state = json.loads(site.knowledge.get("policy.send_rate").value)
            assert state["policy"]["phase"] == "protect"
            assert state["given"]["decided_at_s"] == json.loads(before.value)["given"]["decided_at_s"]
            assert site.audit.last_sequence() == decided, "a renewal by the next leader is no decision"
            two.send_signal(signal.SIGKILL)
            two.wait()
    entry = site.knowledge.get(ADVICE_KEY)
    assert entry is not None
    lifetime_s = msgspec.json.decode(entry.value, type=Advice).lifetime_s
    time.sleep(lifetime_s / 3 + 0.5)
    left = site.knowledge.get(ADVICE_KEY)
    assert left is None or left.revision == entry.revision


def test_a_leader_stops_acting_before_its_lease_can_have_run_out(site: Site) -> None:
    first, second = (LeaderLease(site.knowledge, name, 1.0) for name in ("first", "second"))
    assert first.keep()
    assert not second.keep()
    assert (second.leader, second.may_act) == ("first", False)
    until(second.keep, 10, every_s=0)
    assert not first.may_act
    assert not first.keep()
    first.end()
    assert second.keep(), "who lost the lease does not end another's"
    second.end()
    assert first.keep()


def test_a_leader_whose_bus_hangs_stops_acting(site: Site) -> None:
    control_pid = site.brokers.pids()[-1]
    with ControlBus(site.here, timeout_s=0.3) as bus:
        lease = LeaderLease(bus.knowledge, "first", 2.0)
        assert lease.keep()
        os.kill(control_pid, signal.SIGSTOP)
        try:
            with pytest.raises(BrokerUnavailableError):
                lease.keep()
            until(lambda: not lease.may_act)
        finally:
            os.kill(control_pid, signal.SIGCONT)
        # The renewal may have been stored after all, or the lease may have run out: both end well.
        until(lease.keep)
        assert lease.may_act


def test_a_broker_that_does_not_answer_is_no_zero(site: Site) -> None:
    site.publish(20)
    sensors = Sensors(site.here, name="test", timeout_s=0.5)
    until(lambda: sensors.observe(()).arrived >= 20)
    before = sensors.observe(())
    assert (before.waiting, before.devices) == (20, 40)
    site.brokers.kill_node(0)
    after = sensors.observe(())
    assert (after.at_s, after.arrived, after.committed, after.devices) == (before.at_s, 20, 0, 40)
    assert any("What waits in the brokers is not known at the moment" in alarm for alarm in after.alarms)
    sensors.close()


def test_offsets_outlive_a_node_that_gave_its_slices_away(site: Site) -> None:
    site.publish(20)
    until(lambda: site.log.count() == 20)
    first = Sensors(site.here, name="first")
    assert first.observe(()).waiting == 20
    assert any("No processing node has committed anything yet" in alarm for alarm in first.observe(()).alarms)
    site.commit_all()
    assert first.observe(()).waiting == 0
    first.store_offsets()
    site.commit({})
    second = Sensors(site.here, name="second")
    assert second.observe(()).waiting == first.observe(()).waiting == 0
    site.knowledge.delete("lease.paper")
    assert any("No processing node runs" in alarm for alarm in second.observe(()).alarms)
    for sensors in (first, second):
        sensors.close()
