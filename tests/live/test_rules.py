"""Rules against a real control bus: applied while a controller runs, refused with their place, and taken over."""

import asyncio
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.controllers import Site, controlling, process, started
from support.processes import tidegate
from support.waiting import until, until_async

from tidegate.bus.documents import LEADER_SETTINGS, LOOP_STATE, NODE_LEASES, PROGRESS, RULES, Holder
from tidegate.model.actions import Advise, MoveSlices, Reconfigure, ScaleNodes
from tidegate.model.intents import Algorithm
from tidegate.model.notices import ActionPlan, EventNotification
from tidegate.model.progress import NodeProgress

pytestmark = pytest.mark.live

EVENT = "events:\n  many: {when: waiting > 50, for_s: 0.4}\n"
REPLACE = EVENT + "rules:\n  - {name: calm, on: many, plan: [{policy: none}]}\n"
TUNE = EVENT + "rules:\n  - {name: tune, on: many, plan: [{options: {k_protect: 0.5}}]}\n"
THREE_STEPS = (
    EVENT
    + """
rules:
  - name: grow
    on: many
    plan:
      - send_every_s: {"*": 3}
      - nodes: 2
        until: nodes_working >= 2
        within_s: 60
      - send_every_s: {"*": 2}
"""
)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with started(tmp_path / "state") as running:
        yield running


def applied(site: Site, text: str) -> tuple[int, str]:
    file = site.state / "mine.yaml"
    file.write_text(text)
    done = tidegate("rules", "apply", str(file), "--state", str(site.state))
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("text", "chosen"), [(REPLACE, Algorithm(name="none")), (TUNE, Algorithm(options={"k_protect": 0.5}))]
)
def test_a_rule_changes_the_policy_of_a_running_controller(site: Site, text: str, chosen: Algorithm) -> None:
    async def scenario() -> None:
        async with controlling(site.here) as controller:
            await until_async(lambda: controller.view().now)
            assert (await asyncio.to_thread(applied, site, text))[0] == 0
            await until_async(lambda: controller.view().rules.name == "mine.yaml")
            await asyncio.to_thread(site.publish, 200)
            await until_async(lambda: controller.view().rules.rules[0].plan == "in force")
            status, said = await asyncio.to_thread(applied, site, text.replace("many", "money", 1))
            assert status == 2
            assert "mine.yaml, line 4, column 18: rules[0].on names 'many', which is no event" in said
            assert controller.view().rules.rules[0].plan == "in force", "a mistake changes nothing"
            site.commit_all()
            await until_async(lambda: not controller.view().rules.events["many"])
            await until_async(lambda: not controller.view().rules.rules[0].plan)

    asyncio.run(scenario())
    changes = [one.action for one in site.audit.last(50) if isinstance(one.action, Reconfigure)]
    assert changes == [Reconfigure(policies={"send-rate": chosen}), Reconfigure(policies={"send-rate": Algorithm()})]
    told = [one for one in site.audit.last_notices(50) if isinstance(one, EventNotification) and one.event == "many"]
    assert [one.active for one in told] == [True, False]


def test_the_next_leader_goes_on_with_the_step_that_is_due(site: Site) -> None:
    assert applied(site, THREE_STEPS)[0] == 0
    with process(site, "one") as one, process(site, "two") as two:
        until(lambda: site.leader() is not None and "is ready" in (site.state / "two.log").read_text())
        site.publish(200)
        until(lambda: any(isinstance(done.action, ScaleNodes) for done in site.audit.last(50)))
        leader, next_one = ("one", "two") if site.leader() == "one" else ("two", "one")
        {"one": one, "two": two}[leader].send_signal(signal.SIGKILL)
        until(lambda: site.leader() == next_one)
        second = NodeProgress(node="paper-2", ready=True)
        site.bus.put(NODE_LEASES, Holder("paper-2", "1"), "paper-2", lease_s=60)
        site.bus.put(PROGRESS, second, "paper-2")
        until(lambda: (state := site.bus.get(LOOP_STATE)) is not None and state.runs[-1].state == "in force", 30)
    decisions = [one for one in site.audit.last(100) if one.by.startswith("rule ")]
    asked = [one.action.advice.interval_s for one in decisions if isinstance(one.action, Advise)]
    assert asked == [3.0, 2.0], "each step once"
    assert [one.action for one in decisions if isinstance(one.action, ScaleNodes)] == [ScaleNodes(nodes_wanted=2)]
    assert len({one.plan for one in decisions}) == len(decisions)
    told = [one for one in site.audit.last_notices(100) if isinstance(one, ActionPlan)]
    assert [(one.state, one.step) for one in told] == [("doing", 1), ("doing", 2), ("doing", 3), ("in force", 3)]
    assert not any(isinstance(one.action, MoveSlices) and not one.acted for one in site.audit.last(100))


def test_what_was_applied_is_shown(site: Site) -> None:
    assert applied(site, TUNE) == (0, "mine.yaml is applied: 1 event(s) and 1 rule(s).\n")
    shown = tidegate("rules", "show", "--state", str(site.state)).stdout
    assert "tune" in shown
    assert applied(site, "")[0] == 0
    stored = site.bus.get(RULES)
    assert stored is not None
    assert stored.rules.rules == ()


def test_rules_that_the_leader_could_not_follow_are_refused_at_once(site: Site) -> None:
    async def scenario() -> tuple[int, str]:
        async with controlling(site.here) as controller:
            await until_async(lambda: controller.view().leader and site.bus.get(LEADER_SETTINGS))
            return await asyncio.to_thread(applied, site, THREE_STEPS.replace("nodes: 2", "nodes: 9"))

    status, said = asyncio.run(scenario())
    assert (status, said.count("\n")) == (2, 1)
    assert "Rule grow wants 9 nodes, and nodes_max is 3" in said
    assert site.bus.get(RULES) is None
