"""What is told of a plan reaches people, whoever leads when it can be told; and always in the same order."""

import msgspec
import pytest

from tidegate.loop.events import EventState
from tidegate.loop.knowledge import Knowledge
from tidegate.loop.machine import ControlLoop
from tidegate.loop.notices import notices
from tidegate.loop.rules import RuleSet
from tidegate.loop.state import LoopState
from tidegate.model.decisions import Mode
from tidegate.model.notices import ActionPlan, EventNotification
from tidegate.model.observations import NodeState, Observation

RULES = msgspec.convert(
    {
        "events": {"crowded": {"when": "devices > 500"}},
        "rules": [{"name": "r", "on": "crowded", "plan": [{"nodes": 2}]}],
    },
    RuleSet,
)


def told_of(*, taken_over: bool) -> list[tuple[str, str]]:
    """What is told of a plan whose action is always refused."""
    loop, told = ControlLoop((), {}, window_s=3.0, rules=RULES), []
    for second in range(20):
        observation = Observation(
            at_s=1_000.0 + second,
            arrived=second,
            committed=second,
            head_age_s=0.0,
            devices=100 if second < 5 else 900,
            nodes=(NodeState(name="n", alive=True, slices=(0,), rows=second),),
        )
        outcome = loop.tick(observation, Mode())
        loop.told({proposal.plan: "refused" for proposal in outcome.proposals})
        told += [(one.state, one.trouble) for one in loop.state.notices if isinstance(one, ActionPlan)]
        loop.noticed()
        if taken_over:
            loop.resume(msgspec.json.decode(msgspec.json.encode(loop.state), type=LoopState))
    return told


@pytest.mark.parametrize("taken_over", [False, True])
def test_a_plan_that_fails_is_told_whoever_leads(taken_over: bool) -> None:
    told = told_of(taken_over=taken_over)
    assert ("doing", "refused") in told
    assert ("undoing", "step 1 of 1 failed: refused") in told
    assert len(told) == len(set(told))
    assert told == told_of(taken_over=False)


def test_events_are_told_in_the_order_of_their_names() -> None:
    names = [f"event-{number:03}" for number in range(50)]
    after = LoopState(events={name: EventState(active=True) for name in reversed(names)})
    known = Knowledge(at_s=1.0, measured_at_s=1.0, complete=True, properties={})
    told = [one.event for one in notices(LoopState(), after, known) if isinstance(one, EventNotification)]
    assert told == names
