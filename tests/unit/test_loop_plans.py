"""Plans of rules, step by step: in order, once, and back again where a step fails."""

import msgspec
import pytest

from tidegate.loop import plans
from tidegate.loop.knowledge import Knowledge
from tidegate.loop.plans import ATTEMPT_S, ATTEMPTS_MAX, PlanRun
from tidegate.model.intents import Count, Owner, Pace, Reason, Value
from tidegate.model.observations import NodeState
from tidegate.model.plans import Plan, Step

REASON = Reason(rule="a test", rejected="nothing", because="so")
SLOWER = Step(wanted={"send-rate/*": Pace(interval_s=5.0)})
MORE = Step(wanted={"nodes": Count(nodes=3)}, until="nodes_working >= 3", within_s=60.0)
MOVED = Step(wanted={"slice/1": Owner(node="node-2")})
BEFORE: dict[str, Value] = {
    "send-rate/*": Pace(interval_s=0.0),
    "nodes": Count(nodes=1),
    "slice/1": Owner(node="node-1"),
}


def plan(*steps: Step, stays: bool = False) -> Plan:
    return Plan(id="1", by="rule", event="flood", steps=steps or (SLOWER, MORE, MOVED), reason=REASON, stays=stays)


def looked(
    run: PlanRun, at_s: float = 0.0, *, nodes: float = 1.0, active: bool = True, owner: str = "node-1"
) -> PlanRun:
    known = Knowledge(
        at_s=at_s,
        measured_at_s=at_s,
        complete=True,
        properties={"chain": {"nodes_working": nodes}},
        nodes=(NodeState(name=owner, alive=True, slices=(1,), rows=0),),
    )
    return plans.advance(run, known, BEFORE, event_active=active)


def at_step_two() -> PlanRun:
    return looked(plans.told(plans.begin(plan(), BEFORE, 0.0), None))


def in_force() -> PlanRun:
    run = looked(plans.told(at_step_two(), None), nodes=3.0)
    return looked(plans.told(run, None), owner="node-2")


def test_steps_follow_each_other_once_their_effect_is_there() -> None:
    run = plans.begin(plan(), BEFORE, 0.0)
    assert run.wanted == run.due == SLOWER.wanted
    assert looked(run) == run, "nobody has said yet that it was carried out"
    run = at_step_two()
    assert run.due == MORE.wanted
    assert run.wanted == {**SLOWER.wanted, **MORE.wanted}
    run = plans.told(run, None)
    assert looked(run, 59.0) == run, "its effect is waited for"
    run = looked(run, 59.0, nodes=3.0)
    assert run.due == MOVED.wanted
    assert in_force().state == "in force"
    assert in_force().wanted == {**SLOWER.wanted, **MORE.wanted, **MOVED.wanted}


def test_it_is_taken_back_last_step_first_when_its_event_is_over() -> None:
    run, taken_back = looked(in_force(), active=False), []
    while not run.is_over:
        taken_back.append(run.due)
        run = looked(plans.told(run, None), active=False)
    assert run.state == "undone"
    assert taken_back == [{"slice/1": BEFORE["slice/1"]}, {"nodes": BEFORE["nodes"]}, {}], "what lapses is the policy's"
    assert run.wanted == {}


def test_what_stays_is_done_and_wants_nothing_more() -> None:
    run = plans.told(plans.begin(plan(SLOWER, stays=True), BEFORE, 0.0), None)
    run = looked(looked(run), active=False)
    assert (run.state, run.wanted) == ("done", {})


def test_a_step_that_fails_is_tried_again_and_then_taken_back_with_all_before_it() -> None:
    run = at_step_two()
    for turn in range(ATTEMPTS_MAX - 1):
        for moment in range(5):
            run = plans.told(run, "the bus is away", turn * ATTEMPT_S + 0.5 * moment)
        assert run.due == MORE.wanted, "tries that follow each other at once count as one"
    run = plans.told(run, "the bus is away", (ATTEMPTS_MAX - 1) * ATTEMPT_S)
    assert (run.state, run.trouble) == ("undoing", "step 2 of 3 failed: the bus is away")
    assert run.due == {"nodes": Count(nodes=1)}
    assert run.wanted == {**SLOWER.wanted, "nodes": Count(nodes=1)}
    run = looked(plans.told(run, None))
    assert (run.due, run.wanted) == ({}, {})
    assert looked(plans.told(run, None)).state == "undone"


def test_a_step_whose_effect_does_not_show_in_time_is_taken_back() -> None:
    run = looked(plans.told(at_step_two(), None), 60.0)
    assert run.state == "undoing"
    assert run.trouble == "step 2 of 3 failed: 'nodes_working >= 3' did not come to hold within 60 s"


def test_a_step_is_over_when_what_it_wants_is_so() -> None:
    """A slice that nobody takes has not been moved, whatever was written down."""
    run = plans.told(plans.begin(plan(MOVED), BEFORE, 0.0), None)
    assert looked(run, 29.0) == run
    assert looked(run, 29.0, owner="node-2").state == "in force"
    late = looked(run, 30.0)
    assert (late.state, late.trouble) == (
        "undoing",
        "step 1 of 1 failed: what it wants did not come to hold within 30 s",
    )


def test_a_clock_that_is_set_back_makes_no_step_wait_for_longer() -> None:
    run = plans.told(plans.begin(plan(MOVED), BEFORE, 3_600.0), None)
    run = looked(run, 0.0)
    assert looked(run, 30.0).state == "undoing"


def test_where_the_way_back_is_not_known_it_is_stuck_and_says_at_which_step() -> None:
    run = plans.begin(plan(MORE), {}, 0.0)
    for turn in range(ATTEMPTS_MAX):
        run = plans.told(run, "refused", turn * ATTEMPT_S)
    assert run.state == "stuck"
    assert run.trouble == (
        "stuck at step 1, because how nodes was before it is not known (step 1 of 1 failed: refused)"
    )
    assert run.wanted == {}


def test_a_way_back_that_fails_is_stuck() -> None:
    run = looked(in_force(), active=False)
    for turn in range(ATTEMPTS_MAX):
        run = plans.told(run, "node-1 has gone", turn * ATTEMPT_S)
    assert run.state == "stuck"
    assert run.trouble.startswith("stuck at step 3, because its way back failed: node-1 has gone")


@pytest.mark.parametrize("run", [at_step_two(), in_force(), looked(in_force(), active=False)])
def test_the_next_leader_goes_on_where_the_last_one_stopped(run: PlanRun) -> None:
    taken_up = msgspec.json.decode(msgspec.json.encode(run), type=PlanRun)
    assert taken_up == run
    assert taken_up.wanted == run.wanted
