"""Controllers against real brokers: an overload, a dead leader, a broker that does not answer, an operator."""

import asyncio
import contextlib
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest
from support.bus import ControlBus
from support.controllers import Site, controlling, process, started
from support.processes import tidegate
from support.waiting import until, until_async

from tidegate.bus.client import Bus
from tidegate.bus.documents import (
    ADVICE,
    APPLY,
    AUDIT,
    LEADER,
    LOOP_STATE,
    MODE,
    NODE_LEASES,
    OFFSETS,
    PROGRESS,
    ROUTES,
    TABLES,
    Holder,
)
from tidegate.bus.jetstream import ask
from tidegate.bus.leases import LeaderLease, Lease
from tidegate.cli import explain, mode
from tidegate.controller.acting import Acting, NotLeadingError, change_mode
from tidegate.controller.forgetting import forget_gone
from tidegate.controller.sensors import Sensors
from tidegate.controller.server import Controller
from tidegate.controller.settings import ControllerSettings
from tidegate.loop.plans import PlanRun
from tidegate.loop.state import LoopState
from tidegate.model.actions import Advise, kind_of
from tidegate.model.advice import Advice
from tidegate.model.decisions import Apply, Decision, Mode, Proposal
from tidegate.model.errors import BrokerUnavailableError, UserError
from tidegate.model.intents import Count, Reason
from tidegate.model.plans import Plan, Step
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
            await controller.set_mode(Mode(send_rate="shadow"))
            await asyncio.to_thread(site.publish, 200)
            await until_async(lambda: any(not decision.acted for decision in site.audit.last(50)))
            assert site.advice() is None
            mode.freeze(site.state)
            await until_async(lambda: controller.view().mode.frozen)
            count = site.audit.last_sequence()
            await controller.set_mode(Mode(frozen=True))
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
                await until_async(
                    lambda: {kind_of(one.action) for one in follower.view().decisions} == {"route", "advise"}
                )
                assert follower.view().decisions == site.audit.last(50)
            await until_async(lambda: second.view().leader == "second")
            revision = site.bus.revision(ADVICE)
            await until_async(lambda: site.bus.revision(ADVICE) > revision)

    asyncio.run(scenario())


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
            before = site.bus.get(LOOP_STATE)
            assert before is not None
            decided = site.audit.last_sequence()
            one.send_signal(signal.SIGKILL)
            one.wait()
            taken_s = until(lambda: site.leader() == "two")
            assert taken_s < lease_s + 1, f"took {taken_s:.1f} s"
            revision = site.bus.revision(ADVICE)
            until(lambda: site.bus.revision(ADVICE) > revision)
            state = site.bus.get(LOOP_STATE)
            assert state is not None
            assert state.policies["send-rate"].finding.phase == "protect"
            assert state.planner.in_force["send-rate"].decided_at_s == before.planner.in_force["send-rate"].decided_at_s
            assert site.audit.last_sequence() == decided, "a renewal by the next leader is no decision"
            two.send_signal(signal.SIGKILL)
            two.wait()
    stored = site.bus.stored(ADVICE)
    assert stored is not None
    time.sleep(stored.value.lifetime_s / 3 + 0.5)
    left = site.bus.stored(ADVICE)
    assert left is None or left.revision == stored.revision


def test_a_leader_stops_acting_before_its_lease_can_have_run_out(site: Site) -> None:
    first, second = (LeaderLease(site.bus, name, 1.0) for name in ("first", "second"))
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
        lease = LeaderLease(bus, "first", 2.0)
        assert lease.keep()
        os.kill(control_pid, signal.SIGSTOP)
        try:
            until(lambda: psutil.Process(control_pid).status() == psutil.STATUS_STOPPED)
            with pytest.raises(BrokerUnavailableError):
                lease.keep()
            until(lambda: not lease.may_act)
        finally:
            os.kill(control_pid, signal.SIGCONT)
        # The renewal may have been stored after all, or the lease may have run out: both end well.
        until(lease.keep)
        assert lease.may_act


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


def test_what_was_decided_before_a_freeze_is_not_carried_out_after_it(site: Site) -> None:
    """The leader died between deciding and acting, and the operator froze everything meanwhile."""
    advise = Advise(advice=Advice(interval_s=9.0, lifetime_s=30.0))
    reason, now_s = Reason(rule="a test", rejected="nothing", because="so"), time.time()
    decided = Proposal(at_s=now_s, plan="1", round="1", by="send-rate", action=advise, reason=reason, sentence="so")
    site.bus.put(LOOP_STATE, LoopState(at_s=now_s, pending=(decided,)))
    mode.freeze(site.state)

    async def scenario() -> None:
        async with controlling(site.here) as controller:
            await until_async(lambda: controller.view().decisions)

    asyncio.run(scenario())
    (written,) = site.audit.last(10)
    assert (written.acted, site.advice()) == (False, None)
    assert written.trouble == "it was decided before the operator's mode became frozen."


def test_a_successor_whose_clock_is_behind_measures_anew(site: Site) -> None:
    """Rates over the jump would be a thousandth of what they are, and silence every device."""
    site.bus.put(LOOP_STATE, LoopState(at_s=time.time() + 3_600))

    async def scenario() -> None:
        async with controlling(site.here) as controller:
            stop = time.monotonic() + 4.0
            while time.monotonic() < stop:
                await asyncio.to_thread(site.publish, 20)
                site.commit_all()
                await asyncio.sleep(0.05)
            samples = [one for one in controller.view().samples if one.at_s > time.time() + 3_000]
            assert len(samples) > 5
            assert min(one.arrival_per_s for one in samples[-5:]) > 20

    asyncio.run(scenario())


def test_a_leader_that_was_away_reads_what_others_did_before_it_acts(site: Site) -> None:
    """It slept through its lease; another led, decided and died: its numbers go on, nothing is done from memory."""
    with process(site, "one") as one:
        until(lambda: site.leader() == "one" and site.bus.get(LOOP_STATE) is not None)
        one.send_signal(signal.SIGSTOP)
        with process(site, "two") as two:
            until(lambda: site.leader() == "two")
            site.publish(300)
            until(lambda: any(decision.controller == "two" for decision in site.audit.last(50)))
            two.send_signal(signal.SIGKILL)
        until(lambda: site.leader() is None)
        one.send_signal(signal.SIGCONT)
        until(lambda: site.leader() == "one")
        site.commit_all()
        until(lambda: site.audit.last(1)[0].controller == "one")
    plans = [decision.plan for decision in site.audit.last(50)]
    assert len(set(plans)) == len(plans)
    assert plans == sorted(plans, key=int)


def test_a_late_write_of_one_that_no_longer_leads_is_refused(site: Site) -> None:
    urls = site.here.control_urls
    first, second = Acting(urls, "first", 60.0), Acting(urls, "second", 60.0)
    assert first.lease.keep()
    assert first.state() == LoopState()
    first.keep(LoopState(fired=("a",)))
    second.state()
    site.bus.delete(LEADER)
    assert second.lease.keep()
    second.keep(LoopState(fired=("b",)))
    with pytest.raises(NotLeadingError, match="another controller has acted"):
        first.keep(LoopState(fired=("c",)))
    assert second.state() == LoopState(fired=("b",))
    first.close()
    second.close()


def test_a_freeze_is_not_lost_beside_another_change_of_the_mode(site: Site) -> None:
    def change(step: Callable[[Mode], Mode]) -> None:
        with Bus(site.here.control_urls) as bus:
            for _ in range(20):
                change_mode(bus, step)

    with ThreadPoolExecutor(2) as both:
        for share in (0.2, 0.3, 0.4):
            change_mode(site.bus, lambda before: msgspec.structs.replace(before, frozen=False))
            frozen = both.submit(change, lambda before: msgspec.structs.replace(before, frozen=True))
            other = both.submit(change, lambda before, share=share: msgspec.structs.replace(before, cohort_share=share))
            frozen.result(20)
            other.result(20)
            found = site.bus.get(MODE)
            assert found is not None
            assert (found.frozen, found.cohort_share) == (True, share)


def test_the_operators_word_is_obeyed_once(site: Site) -> None:
    async def scenario() -> None:
        async with controlling(site.here) as controller:
            await controller.set_mode(Mode(send_rate="shadow"))
            await asyncio.to_thread(site.publish, 300)
            await until_async(lambda: any(not decision.acted for decision in site.audit.last(50)))
            site.bus.put_raw("apply", b"{{")
            await until_async(lambda: site.bus.entry(APPLY) is None)
            site.bus.put(APPLY, Apply(once="now"), lease_s=10.0)
            await until_async(site.advice)
            assert site.bus.get(APPLY) is None

    asyncio.run(scenario())


@pytest.mark.parametrize("until_", ["nonesuch > 1", "head_age_s >"])
def test_a_state_of_another_version_is_begun_anew(site: Site, until_: str) -> None:
    plan = {"id": "1", "by": "r", "event": "e", "steps": [{"wanted": {}, "until": until_}]}
    plan["reason"] = {"rule": "", "rejected": "", "because": ""}
    raw = {"runs": [{"plan": plan, "before": [{}], "step": 0}]}
    site.bus.put_raw("loop", msgspec.json.encode(raw))

    async def scenario() -> None:
        async with controlling(site.here) as controller:
            await until_async(lambda: controller.view().now)
            await asyncio.to_thread(site.publish, 300)
            await until_async(site.advice)

    asyncio.run(scenario())


def test_whoever_cannot_read_the_rules_leaves_their_plans(site: Site) -> None:
    step = Step(wanted={"nodes": Count(nodes=2)})
    reason = Reason(rule="a test", rejected="nothing", because="so")
    plan = Plan(id="1", by="gone", event="hot", steps=(step,), reason=reason)
    run = PlanRun(plan=plan, state="in force", before=({"nodes": Count(nodes=1)},))
    site.bus.put(LOOP_STATE, LoopState(runs=(run,)))
    site.bus.put_raw("rules", b"{{")

    async def scenario() -> None:
        async with controlling(site.here) as controller:
            await until_async(lambda: any("'rules' on the control bus is damaged" in one for one in alarms(controller)))
            await asyncio.sleep(2.0)
            state = site.bus.get(LOOP_STATE)
            assert state is not None
            assert [one.state for one in state.runs] == ["in force"]

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
