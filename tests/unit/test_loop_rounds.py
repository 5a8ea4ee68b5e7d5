"""A decision is made again from what the audit has of its round, by the same code in another process's place."""

import msgspec
import pytest

from tidegate.controller.settings import ControllerSettings
from tidegate.loop.machine import ControlLoop
from tidegate.loop.plans import PlanRun
from tidegate.loop.rounds import Round, replay
from tidegate.loop.state import LoopState
from tidegate.model.decisions import Decision, Mode, Proposal
from tidegate.model.intents import Count, Reason
from tidegate.model.observations import BrokerState, NodeState, Observation
from tidegate.model.plans import Plan, Step

SETTINGS = ControllerSettings(overload="head_age_s > 1", nodes_max=3)


def observed(second: int) -> Observation:
    """A flood: 100 devices, 200 messages a second, of which one node takes 50."""
    node = NodeState(
        name="node-1", alive=True, slices=(0, 1), rows=50 * second, limit_rows=50.0 * second, limit_s=float(second)
    )
    return Observation(
        at_s=1_000.0 + second,
        arrived=200 * second,
        committed=50 * second,
        head_age_s=0.75 * second,
        devices=100,
        nodes=(node,),
        brokers=(BrokerState(name="a", address="h:1", healthy=second > 3),),
    )


def played(settings: ControllerSettings) -> list[tuple[bytes, Proposal]]:
    """Every decision of half a minute, with its round as the audit has it."""
    loop, found = settings.control_loop(), []
    for second in range(1, 31):
        before = loop.state
        outcome = loop.tick(observed(second), Mode())
        loop.carried_out(outcome.proposals)
        if outcome.knowledge is not None:
            kept = Round(at_s=0.0, knowledge=outcome.knowledge, state=before, mode=Mode())
            found += [(msgspec.json.encode(kept), one) for one in outcome.proposals if one.recorded]
    return found


def decision(made: Proposal) -> Decision:
    copied = ("plan", "round", "by", "phase", "sentence", "action", "reason", "expects")
    fields = {name: getattr(made, name) for name in copied}
    return Decision(at_s=5.0, controller="c", acted=made.acts, **fields)


def replayed(loop: ControlLoop, kept: bytes, made: Proposal) -> tuple[bool, tuple[str, ...]]:
    found = replay(loop, msgspec.json.decode(kept, type=Round), decision(made))
    return found.equal, found.differs


@pytest.mark.parametrize("policy", ["gotin", "adaptive", "coupled", "credits", "gradient2", "spark-pid"])
def test_it_comes_out_the_same(policy: str) -> None:
    settings = msgspec.structs.replace(SETTINGS, policy=policy)
    decisions = played(settings)
    assert {made.by for _, made in decisions} >= {"send-rate", "routes"}
    assert [replayed(settings.control_loop(), *one) for one in decisions] == [(True, ())] * len(decisions)


def test_with_another_parameter_it_comes_out_otherwise() -> None:
    decisions = played(SETTINGS)
    other = msgspec.structs.replace(SETTINGS, options={"k_protect": 0.5})
    found = [(made.by, *replayed(other.control_loop(), kept, made)) for kept, made in decisions]
    assert {equal for by, equal, _ in found if by == "send-rate"} == {False}
    assert {equal for by, equal, _ in found if by == "routes"} == {True}
    assert {part for _, _, differs in found for part in differs} <= {"action", "expects", "reason", "sentence"}


def test_what_is_not_decided_any_more_is_said() -> None:
    calm = msgspec.structs.replace(SETTINGS, overload="head_age_s > 1000")
    kept, made = next(one for one in played(SETTINGS) if one[1].by == "send-rate")
    assert replayed(calm.control_loop(), kept, made)[0] is False


def test_a_decision_of_a_round_without_rules_comes_out_the_same() -> None:
    """Rules that could not be read take no plan back: neither then nor when it is played again."""
    step = Step(wanted={"nodes": Count(nodes=2)})
    plan = Plan(id="1", by="gone", event="hot", steps=(step,), reason=Reason(rule="", rejected="", because="so"))
    loop = SETTINGS.control_loop()
    loop.knows_rules = False
    for second in range(1, 6):
        loop.watch(observed(second))
    loop.resume(LoopState(runs=(PlanRun(plan=plan, state="in force", before=({"nodes": Count(nodes=1)},)),)))
    found = []
    for second in range(6, 10):
        before = loop.state
        outcome = loop.tick(observed(second), Mode())
        loop.carried_out(outcome.proposals)
        if outcome.knowledge is not None:
            kept = Round(at_s=0.0, knowledge=outcome.knowledge, state=before, mode=Mode(), knows_rules=False)
            found += [(msgspec.json.encode(kept), one) for one in outcome.proposals if "gone" in one.by]
    assert found
    assert [replayed(SETTINGS.control_loop(), *one) for one in found] == [(True, ())] * len(found)


def test_two_leaders_that_come_to_the_same_number_name_their_rounds_apart() -> None:
    names = []
    for begins in (1, 7):
        loop = SETTINGS.control_loop()
        outcomes = [loop.tick(observed(second), Mode()) for second in range(begins, begins + 4)]
        names.append(next(one.round for outcome in outcomes for one in outcome.proposals))
    assert [name.partition("-")[0] for name in names] == ["1", "1"]
    assert len(set(names)) == 2
    assert not any(set(name) & set(".*> ") for name in names), "it is part of a subject"
