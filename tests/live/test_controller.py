"""Controllers against real brokers: an overload, a dead leader, a broker that does not answer, an operator."""

import asyncio
import contextlib
import json
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.bus import ControlBus
from support.controllers import Site, controlling, started
from support.processes import tidegate
from support.waiting import until, until_async

from tidegate.bus.client import Bus
from tidegate.bus.documents import (
    APPLY,
    AUDIT,
    EVENTS,
    MODE,
    NODE_LEASES,
    OFFSETS,
    PROGRESS,
    ROUNDS,
    ROUTES,
    TABLES,
    Holder,
)
from tidegate.bus.jetstream import ask
from tidegate.bus.leases import LeaderLease, Lease
from tidegate.cli import explain, mode
from tidegate.controller.acting import change_mode
from tidegate.controller.forgetting import forget_gone
from tidegate.controller.sensors import Sensors
from tidegate.controller.server import Controller
from tidegate.model.actions import Advise
from tidegate.model.advice import Advice
from tidegate.model.decisions import Apply, Decision
from tidegate.model.errors import BrokerUnavailableError, UserError
from tidegate.model.intents import Reason
from tidegate.model.progress import NodeProgress, SliceProgress
from tidegate.model.tables import TablesState
from tidegate.pipeline.keeper import Keeper
from tidegate.pipeline.progress import ProgressBoard
from tidegate.pipeline.settings import NodeSettings

pytestmark = pytest.mark.live


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with started(tmp_path / "state") as running:
        yield running


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
    decisions = [decision for decision in site.audit.last(50) if isinstance(decision.action, Advise)]
    assert decisions[0].phase == "protect"
    assert decisions[0].reason.measurements["waiting"] > 50
    assert decisions[0].reason.rule.startswith("protect: ")
    assert decisions[0].sentence.startswith("40 devices are asked to send every")
    assert decisions[-1].sentence.startswith("Devices return to their default")
    assert all(decision.acted for decision in decisions)
    view = controller.view()
    assert view.decisions[-len(decisions) :] == tuple(decisions)
    assert [node.name for node in view.chain.nodes] == ["paper"]
    assert view.chain.brokers[0].healthy
    routes = site.bus.get(ROUTES)
    assert routes is not None
    assert (routes.brokers[0].host, routes.brokers[0].port) == site.here.mqtt_addresses[0]
    assert site.here.mqtt_password not in msgspec.json.encode(site.audit.last(50)).decode()
    assert site.leader() is None, "a controller that stops in good order lets the next one lead at once"


def test_modes_are_obeyed_and_explained(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    async def scenario() -> None:
        async with controlling(site.here) as controller:
            await controller.set_mode({"send_rate": "shadow"})
            await asyncio.to_thread(site.publish, 200)
            await until_async(lambda: any(not decision.acted for decision in site.audit.last(50)))
            assert site.advice() is None
            mode.freeze(site.state)
            await until_async(lambda: controller.view().mode.frozen)
            count = site.audit.last_sequence()
            assert (await controller.set_mode({"send_rate": "acting"})).frozen, "of a page that does not know it"
            await asyncio.sleep(0.6)
            assert (site.advice(), site.audit.last_sequence()) == (None, count)
            mode.release(site.state)
            await until_async(site.advice)

    asyncio.run(scenario())
    explain.explain(state=site.state, last=50)
    told = capsys.readouterr().out
    assert "(not carried out)" in told
    assert "  rule       protect: min(R / N, S_default)" in told
    assert "  not taken  leave devices at 2 msg/s" in told
    explain.explain(state=site.state, last=1, as_json=True)
    assert len(json.loads(capsys.readouterr().out)["decisions"]) == 1


class LosesAnswers(ControlBus):
    """What it puts is stored, and sometimes it does not hear so."""

    loses = False

    def put(self, *arguments: Any, **options: Any) -> int | None:
        revision = super().put(*arguments, **options)
        if self.loses:
            raise BrokerUnavailableError("the answer is lost")
        return revision


def test_a_node_whose_renewal_was_stored_but_not_answered_keeps_its_lease(site: Site) -> None:
    with LosesAnswers(site.here) as bus:
        lease = Lease(bus, NODE_LEASES, "node-1", 10)
        assert lease.keep()
        for _ in range(3):
            bus.loses = True
            with pytest.raises(BrokerUnavailableError):
                lease.keep()
            bus.loses = False
            assert lease.keep(), "it is this very run that holds it"
        twin = Lease(site.bus, NODE_LEASES, "node-1", 10)
        assert not twin.keep(), "another run of the same name is another holder"
        lease.end()
        assert twin.keep()
        stale = Lease(bus, NODE_LEASES, "node-2", 1)
        assert stale.keep()
        heir = Lease(site.bus, NODE_LEASES, "node-2", 10)
        until(heir.keep, 10)
        stale.end()
        assert heir.keep(), "a lease that is another's by now is not ended"
        held = site.bus.get(NODE_LEASES, "node-2")
        assert held is not None


def take_lease(site: Site, name: str) -> None:
    settings, board = NodeSettings(name=name, lease_s=1.0), ProgressBoard(name)
    keeper = Keeper(site.here, settings, board, lambda _: None, threading.Event(), scratch=lambda: None)
    with contextlib.closing(keeper._bus):
        keeper.take_lease()


def test_a_dead_predecessors_lease_that_comes_back_runs_out_once_more(site: Site) -> None:
    """Seen right after a control bus was killed: a lease that had run out before the node began."""
    site.bus.put(NODE_LEASES, Holder("again", "dead"), "again", lease_s=2)
    take_lease(site, "again")
    held = site.bus.get(NODE_LEASES, "again")
    assert held is not None
    assert held.incarnation != "dead"
    site.bus.put(NODE_LEASES, Holder("taken", "alive"), "taken", lease_s=60)
    with pytest.raises(UserError, match="Another node named taken has just started: choose another --name"):
        take_lease(site, "taken")


def test_a_damaged_document_is_told_and_stops_nothing_else(site: Site) -> None:
    async def scenario() -> None:
        async with controlling(site.here) as controller:
            await until_async(lambda: controller.view().now)
            site.bus.put_raw("mode", b"{{")
            await until_async(lambda: any("'mode' on the control bus is damaged" in one for one in alarms(controller)))
            assert any("'tidegate release' writes it again" in one for one in alarms(controller))
            shown = await asyncio.to_thread(tidegate, "mode", "--state", str(site.state))
            assert (shown.returncode, shown.stdout) == (1, "")
            assert "'mode' on the control bus is damaged" in shown.stderr
            await asyncio.to_thread(mode.release, site.state)
            await until_async(lambda: not any("damaged" in one for one in alarms(controller)))

    asyncio.run(scenario())


def test_rules_that_cannot_be_read_are_told_and_stop_nothing_else(site: Site) -> None:
    site.bus.put_raw("rules", b'{"rules": {"ranges": {"head_age_s": [null]}}}')

    async def scenario() -> None:
        async with controlling(site.here) as controller:
            await until_async(lambda: any("'rules' on the control bus is damaged" in one for one in alarms(controller)))
            await asyncio.to_thread(site.publish, 300)
            await until_async(lambda: (advice := site.advice()) and advice.interval_s > 0)

    asyncio.run(scenario())


def test_a_freeze_is_not_lost_beside_another_change_of_the_mode(site: Site) -> None:
    def change(changes: Mapping[str, object]) -> None:
        with Bus(site.here.control_urls) as bus:
            for _ in range(20):
                change_mode(bus, changes)

    with ThreadPoolExecutor(2) as both:
        for share in (0.2, 0.3, 0.4):
            change_mode(site.bus, {"frozen": False})
            frozen = both.submit(change, {"frozen": True})
            other = both.submit(change, {"cohort_share": share})
            frozen.result(20)
            other.result(20)
            found = site.bus.get(MODE)
            assert found is not None
            assert (found.frozen, found.cohort_share) == (True, share)


def test_the_operators_word_is_obeyed_once(site: Site) -> None:
    async def scenario() -> None:
        async with controlling(site.here) as controller:
            await controller.set_mode({"send_rate": "shadow"})
            await asyncio.to_thread(site.publish, 300)
            await until_async(lambda: any(not decision.acted for decision in site.audit.last(50)))
            site.bus.put_raw("apply", b"{{")
            await until_async(lambda: site.bus.entry(APPLY) is None)
            site.bus.put(APPLY, Apply(once="now"), lease_s=10.0)
            await until_async(site.advice)
            assert site.bus.get(APPLY) is None

    asyncio.run(scenario())


def test_slices_that_cannot_be_read_hide_nothing_else(site: Site) -> None:
    site.publish(20)
    site.bus.assignments.change(lambda before: before.adopt(["paper"])[0])
    sensors = Sensors(site.here, name="test")
    until(lambda: sensors.observe(()).arrived >= 20)
    site.bus.put_raw("slices", b"{{")
    site.publish(10)
    until(lambda: sensors.observe(()).arrived >= 30)
    seen = sensors.observe(())
    assert any("'slices' on the control bus is damaged" in alarm for alarm in seen.alarms)
    assert [(node.name, node.slices) for node in seen.nodes] == [("paper", (0, 1))], "as it was last"
    sensors.close()
    site.bus.put_raw("progress.paper", b"{{")
    shown = tidegate("status", "--state", str(site.state))
    assert shown.returncode == 0
    assert "'slices' on the control bus is damaged" in shown.stderr
    assert "30 readings wait, 1 processing node(s) run." in shown.stdout
    assert "'progress.paper' on the control bus is" in " ".join(shown.stdout.split())


def alarms(controller: Controller) -> tuple[str, ...]:
    return controller.view().alarms


def test_brokers_without_a_log_are_watched_and_routed_to(site: Site) -> None:
    """The same servers as brokers and nothing more: no slices, no backlog, no node, and yet health and routes."""
    here = msgspec.structs.replace(site.here, slices=0)

    async def scenario() -> None:
        async with controlling(here) as controller:
            await until_async(lambda: site.bus.get(ROUTES))
            assert site.bus.get(ROUTES).brokers[0].healthy
            now = controller.view().now
            assert (now.devices, now.waiting, now.age_s) == (40, 0, 0.0)
            assert alarms(controller) == (), "what they do not keep is not missed"
            site.brokers.kill_broker(0)
            await until_async(lambda: any("monitoring page does not answer" in one for one in alarms(controller)))
            assert not controller.view().chain.brokers[0].healthy

    asyncio.run(scenario())


def test_a_broker_that_does_not_answer_is_no_zero(site: Site) -> None:
    site.publish(20)
    sensors = Sensors(site.here, name="test", timeout_s=0.5)
    until(lambda: sensors.observe(()).arrived >= 20)
    before = sensors.observe(())
    assert (before.waiting, before.devices) == (20, 40)
    site.brokers.kill_broker(0)
    after = sensors.observe(())
    assert (after.at_s, after.arrived, after.committed, after.devices) == (before.at_s, 20, 0, 40)
    assert any("What waits in the brokers is not known at the moment" in alarm for alarm in after.alarms)
    sensors.close()


def test_slices_and_tables_are_told_as_they_are_or_as_unknown(site: Site) -> None:
    site.publish(20)
    with contextlib.closing(Sensors(site.here, name="test", timeout_s=0.5)) as sensors:
        until(lambda: sensors.observe(()).arrived >= 20)
        before = sensors.observe(())
        assert before.tables is None
        assert {one.waiting for one in before.slices} <= {None, 0}, "what is committed was never said"
        assert None in {one.waiting for one in before.slices}
        site.commit_all()
        said = TablesState(maintainer="m1", at_s=time.time(), alarms=("The table readings has many files.",))
        site.bus.put(TABLES, said)
        now = sensors.observe(())
        assert sum(one.stored or 0 for one in now.slices) == 20
        assert [(one.waiting, one.age_s) for one in now.slices] == [(0, 0.0)] * len(now.slices)
        assert now.tables == said
        assert "The table readings has many files." in now.alarms
        site.bus.put(TABLES, msgspec.structs.replace(said, at_s=time.time() - 200))
        assert any("No maintainer has said anything for 3 min" in alarm for alarm in sensors.observe(()).alarms)
        site.brokers.kill_broker(0)
        after = sensors.observe(())
        assert {(one.stored, one.waiting, one.age_s) for one in after.slices} == {(None, None, None)}
        assert after.tables is not None


def test_decisions_are_written_down_again_on_a_bus_that_lost_its_store(site: Site) -> None:
    decision = Decision(
        at_s=1.0,
        controller="c",
        plan="1",
        round="1",
        by="send-rate",
        phase="protect",
        sentence="Told.",
        acted=True,
        action=Advise(advice=Advice(interval_s=1.0, lifetime_s=9.0)),
        reason=Reason(rule="told to", rejected="nothing", because="so"),
    )
    site.audit.append(decision, once="1")
    ask(site.bus.wire, f"STREAM.DELETE.{AUDIT.stream}")
    site.audit.append(decision, once="1")
    assert site.audit.last(5) == (decision,)


def test_journals_of_another_version_are_bounded_when_a_controller_starts(site: Site) -> None:
    for name in ("AUDIT", "ROUNDS", "EVENTS"):
        config = {"name": name, "subjects": [f"{name.lower()}.>"], "storage": "file", "max_msgs": 1_000_000}
        flags = {"deny_delete": True, "deny_purge": True, "allow_direct": True}
        ask(site.bus.wire, f"STREAM.CREATE.{name}", config | flags)
    assert site.audit.create() == []
    for journal in (AUDIT, ROUNDS, EVENTS):
        found = ask(site.bus.wire, f"STREAM.INFO.{journal.stream}")["config"]
        assert (found["max_bytes"], found["compression"]) == (journal.bytes_max, "s2")


def test_a_journal_that_cannot_be_bounded_is_said_and_serves(site: Site) -> None:
    ask(
        site.bus.wire,
        f"STREAM.CREATE.{AUDIT.stream}",
        {"name": AUDIT.stream, "subjects": ["audit.>"], "storage": "memory"},
    )
    said: list[str] = []

    async def scenario() -> None:
        async with controlling(site.here, say=said.append) as controller:
            await until_async(lambda: controller.view().decisions)

    asyncio.run(scenario())
    assert "The journal AUDIT on the control bus keeps the bounds that another version gave it" in said[0]
    assert said[1] == "Controller controller-1 is ready."


def test_an_outage_of_the_bus_is_said_once_and_so_is_its_end(site: Site) -> None:
    said: list[str] = []
    control_pid = site.brokers.pids()[-1]

    async def scenario() -> None:
        async with controlling(site.here, say=said.append) as controller:
            await until_async(lambda: controller.view().decisions)
            assert said[0] == "Controller controller-1 is ready."
            os.kill(control_pid, signal.SIGSTOP)
            try:
                await until_async(lambda: any("Who leads is not known" in one for one in alarms(controller)))
                await asyncio.sleep(1.0)
            finally:
                os.kill(control_pid, signal.SIGCONT)
            await until_async(lambda: not any("Who leads is not known" in one for one in alarms(controller)))

    asyncio.run(scenario())
    assert [line.partition("Who leads")[0] for line in said if "Who leads" in line] == ["", "That is over: "]


def test_what_log_and_tables_say_against_each_other_is_told_when_it_stands(site: Site) -> None:
    site.bus.put(OFFSETS, {1: 10**6})
    with contextlib.closing(Sensors(site.here, name="test", timeout_s=0.5)) as sensors:
        told = [any("1000000 is committed" in alarm for alarm in sensors.observe(()).alarms) for _ in range(3)]
    site.bus.delete(OFFSETS)
    assert told == [False, False, True]


def test_what_nodes_said_that_are_gone_for_good_is_forgotten_once_their_offsets_are_stored(site: Site) -> None:
    lease = LeaderLease(site.bus, "leader", 10.0)
    gone = NodeProgress(node="gone", slices={1: SliceProgress(committed=7)})
    site.bus.put(PROGRESS, gone, "gone")
    site.bus.put_raw("progress.broken", b"{{")
    assert forget_gone(site.bus, {1: 7}, 0.0) == [], "nobody leads: nobody knows the bus's time"
    time.sleep(0.05)
    assert lease.keep()
    assert forget_gone(site.bus, {1: 7}) == [], "they have said it only just now"
    assert forget_gone(site.bus, {1: 6}, 0.0) == ["broken"], "what it has committed is known from it alone"
    assert forget_gone(site.bus, {1: 7}, 0.0) == ["gone"]
    assert site.bus.names(PROGRESS) == ["paper"], "one that holds its lease stays"
    lease.end()


def test_a_leading_controller_stores_offsets_before_it_forgets_who_told_them(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate.controller.sensors.forget_gone", partial(forget_gone, forgotten_s=0.0))
    site.bus.put(PROGRESS, NodeProgress(node="gone", slices={1: SliceProgress(committed=7)}), "gone")

    async def scenario() -> None:
        async with controlling(site.here):
            await until_async(lambda: site.bus.names(PROGRESS) == ["paper"])

    asyncio.run(scenario())
    assert site.bus.get(OFFSETS) == {1: 7}


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
    site.bus.delete(NODE_LEASES, "paper")
    assert any("No processing node runs" in alarm for alarm in second.observe(()).alarms)
    for sensors in (first, second):
        sensors.close()
