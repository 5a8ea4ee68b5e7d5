"""Who leads, and what the next one makes of what the last one left: kills, sleeps, clocks, and states of others."""

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psutil
import pytest
from support.bus import ControlBus
from support.controllers import Site, controlling, process, started
from support.waiting import until, until_async

from tidegate.bus.documents import (
    ADVICE,
    LEADER,
    LOOP_STATE,
)
from tidegate.bus.leases import LeaderLease
from tidegate.cli import mode
from tidegate.controller.acting import Acting, NotLeadingError
from tidegate.controller.server import Controller
from tidegate.controller.settings import ControllerSettings
from tidegate.loop.planner import PlannerState
from tidegate.loop.plans import PlanRun
from tidegate.loop.state import LoopState
from tidegate.model.actions import Advise, kind_of
from tidegate.model.advice import Advice
from tidegate.model.decisions import Proposal
from tidegate.model.errors import BrokerUnavailableError
from tidegate.model.intents import Count, Reason
from tidegate.model.plans import Plan, Step

pytestmark = pytest.mark.live


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with started(tmp_path / "state") as running:
        yield running


def alarms(controller: Controller) -> tuple[str, ...]:
    return controller.view().alarms


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


def test_a_successor_whose_clock_is_ahead_goes_on_with_the_time_of_the_last_leader(site: Site) -> None:
    """The last leader's time, as the bus can tell it, is an hour behind this one's."""
    began_s = time.time() - 3_600
    step = Step(wanted={"nodes": Count(nodes=2)}, until="nodes_working >= 2", within_s=300.0)
    reason = Reason(rule="a test", rejected="nothing", because="so")
    plan = Plan(id="1", by="gone", event="hot", steps=(step,), reason=reason)
    before = ({"nodes": Count(nodes=1)},)
    run = PlanRun(plan=plan, before=before, since_s=began_s, carried_out=True)
    site.bus.put(LOOP_STATE, LoopState(at_s=began_s, runs=(run,)))
    site.bus.put_raw("rules", b"{{")  # whoever cannot read them lets the plan go on
    said: list[str] = []

    async def scenario() -> None:
        async with controlling(site.here, say=said.append) as controller:
            await until_async(lambda: (state := site.bus.get(LOOP_STATE)) and state.policies)
            await asyncio.sleep(1.0)
            state = site.bus.get(LOOP_STATE)
            assert state is not None
            assert [(one.state, one.step, one.trouble) for one in state.runs] == [("doing", 0, "")]
            assert 0 < state.at_s - began_s < 60
            assert max(one.at_s for one in controller.view().samples) < began_s + 60

    asyncio.run(scenario())
    assert sum("s ahead of the last leader's" in line for line in said) == 1, said


def test_two_on_one_machine_measure_on(site: Site) -> None:
    said: list[str] = []

    async def scenario() -> None:
        async with controlling(site.here, say=said.append, name="one"):
            async with controlling(site.here, say=said.append, name="two") as second:
                await until_async(lambda: second.view().now)
                await asyncio.sleep(2.0)
            await asyncio.sleep(1.0)

    asyncio.run(scenario())
    assert not any("ahead" in line for line in said)


def test_a_leader_whose_state_is_damaged_goes_on_from_what_it_knows(site: Site) -> None:
    said: list[str] = []

    async def scenario() -> None:
        async with controlling(site.here, say=said.append) as controller:
            await until_async(lambda: controller.view().now)
            await asyncio.to_thread(site.publish, 300)
            await until_async(lambda: (state := site.bus.get(LOOP_STATE)) and state.planner.in_force.get("send-rate"))
            before = site.bus.get(LOOP_STATE)
            assert before is not None
            site.bus.put_raw("loop", b"{{")
            await until_async(lambda: any("'loop' on the control bus is damaged" in one for one in alarms(controller)))
            await until_async(lambda: site.bus.entry(LOOP_STATE).value != b"{{")
            after = site.bus.get(LOOP_STATE)
            assert after is not None
            assert after.planner.plans >= before.planner.plans > 0
            assert any("'loop' on the control bus is damaged" in one for one in alarms(controller)), "for some minutes"

    asyncio.run(scenario())
    assert sum("'loop' on the control bus is damaged" in line for line in said) == 1
    plans = [decision.plan for decision in site.audit.last(50)]
    assert len(set(plans)) == len(plans)


def test_whoever_finds_a_damaged_state_and_knows_none_goes_on_with_the_audits_numbers(site: Site) -> None:
    acting = Acting(site.here.control_urls, "first", 60.0)
    acting.audit.create()
    advise = Advise(advice=Advice(interval_s=9.0, lifetime_s=30.0))
    reason = Reason(rule="a test", rejected="nothing", because="so")
    assert acting.lease.keep()
    for plan in ("40", "41"):
        made = Proposal(at_s=1.0, plan=plan, round=plan, by="x", action=advise, reason=reason, sentence="so")
        acting.carry_out([made], {})
    site.bus.put_raw("loop", b"{{")
    assert (acting.state().planner.plans, acting.damage is not None) == (41, True)
    acting.keep(LoopState(fired=("a",)))
    assert site.bus.get(LOOP_STATE) == LoopState(fired=("a",))
    site.bus.put_raw("loop", b"{{")
    assert acting.state() == LoopState(fired=("a",)), "what it knew last"
    assert acting.last_leaders_now_s(acting.state()) is None, "nobody knows of when that is"
    acting.keep(LoopState(planner=PlannerState(plans=43)))
    site.bus.put_raw("loop", b"{}")
    assert acting.state().planner.plans == 43, "numbers go on, also where somebody has set it back"
    later = Acting(site.here.control_urls, "second", 60.0)
    assert later.state().planner.plans == 41
    later.close()
    acting.close()


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
