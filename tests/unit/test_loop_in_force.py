"""What is a decision, what only a renewal, what is asked for again, and what shadow mode leaves undone."""

import msgspec
import pytest

from tidegate.control.policy import Seen, Verdict
from tidegate.control.send_rate.none import NoState
from tidegate.loop.families import interval_of, paces
from tidegate.loop.knowledge import Knowledge, Standing
from tidegate.loop.monitors import names
from tidegate.loop.planner import Planner, PlannerState
from tidegate.loop.policies.nodes import NodeCount, NodesState
from tidegate.loop.policies.send_rate import SendRate
from tidegate.loop.promises import Promises
from tidegate.loop.wishes import wishes
from tidegate.model.actions import Advise, ScaleNodes
from tidegate.model.advice import INTERVAL_S_MAX, Advice
from tidegate.model.decisions import Mode, Proposal
from tidegate.model.intents import EVERYBODY, Count

LIFETIME_S = 9.0


def verdict(rate: float | None = None, **more: object) -> Verdict:
    said = {"phase": "hold", "capacity_per_s": 50.0, "rule": "the rule", "rejected": "another: no", **more}
    return msgspec.convert({"rate_per_device": rate, **said}, Verdict)


class Says:
    """A send-rate algorithm that says what it was told to."""

    state_type = NoState

    def __init__(self, verdict: Verdict) -> None:
        self._verdict = verdict

    def initial(self) -> NoState:
        return NoState()

    def step(self, state: NoState, seen: Seen) -> tuple[NoState, Verdict]:
        return state, self._verdict


def knowledge(
    at_s: float, in_force: dict[str, Standing] | None = None, *, nodes_working: int = 1, starting: int = 0
) -> Knowledge:
    chain = dict.fromkeys(names(), 0.0) | {
        "waiting": 70.0,
        "head_age_s": 3.0,
        "arrival_per_s": 90.0,
        "devices": 40.0,
        "busy_share": 1.0,
        "nodes_working": float(nodes_working),
        "nodes_starting": float(starting),
        "node_rate_per_s": 50.0,
    }
    return Knowledge(at_s=at_s, measured_at_s=at_s, complete=True, properties={"chain": chain}, in_force=in_force or {})


def planned(
    family: str, before: Standing, wanted: Verdict, known: Knowledge, mode: Mode
) -> tuple[Standing, Proposal | None]:
    _, judgement = SendRate(Says(wanted), LIFETIME_S).step(NoState(), known)
    assert judgement is not None
    wished = wishes("send-rate", SendRate.families, judgement)
    known = msgspec.structs.replace(known, findings={"send-rate": judgement.finding})
    _, counted = NodeCount().step(NodesState(), known)
    assert counted is not None
    wished |= wishes("nodes", NodeCount.families, counted)
    planned = Planner(Promises()).step(PlannerState(in_force={family: before}), {family: [wished[family]]}, known, mode)
    proposals = planned.proposals
    return planned.state.in_force[family], proposals[0] if proposals else None


def advised(before: Standing, wanted: Verdict, at_s: float, *, acts: bool = True) -> tuple[Standing, Proposal | None]:
    mode = Mode(send_rate="acting" if acts else "shadow")
    return planned("send-rate", before, wanted, knowledge(at_s, {"send-rate": before}), mode)


def decided(wanted: Verdict, at_s: float = 0.0, *, acts: bool = True) -> Standing:
    standing, proposal = advised(Standing(), wanted, at_s, acts=acts)
    assert proposal is not None
    return standing


def advice(proposal: Proposal | None) -> Advice:
    assert proposal is not None
    assert isinstance(proposal.action, Advise)
    return proposal.action.advice


# -- advice


def test_advice_names_each_class_and_its_dead_band_and_the_reason() -> None:
    wanted = verdict(0.5, classes={"alarm": None, "telemetry": 0.25}, dead_bands={"door": 3.0})
    _, proposal = advised(Standing(), wanted, 100.0)
    said = advice(proposal)
    assert proposal is not None
    assert said == Advice(
        interval_s=2.0, lifetime_s=12.0, classes={"alarm": 0.0, "telemetry": 4.0}, dead_bands={"door": 3.0}
    )
    assert proposal.sentence == (
        "Devices are asked to send less often (door changes 3 times as large, telemetry every 4 s) because data is "
        "3 s old and Spark takes 50 msg/s."
    )
    assert (proposal.reason.rule, proposal.reason.rejected) == ("the rule", "another: no")
    assert proposal.reason.measurements["waiting"] == 70.0
    # What gateways read: an alarm device is left alone, one of no class keeps to the general interval.
    assert [said.interval_of(name) for name in ("alarm", "telemetry", "unheard-of", None)] == [0.0, 4.0, 2.0, 2.0]
    assert [said.dead_band_of(name) for name in ("door", "alarm")] == [3.0, 1.0]


@pytest.mark.parametrize(
    ("rate", "classes", "lifetime_s"),
    [
        pytest.param(1.0, {}, LIFETIME_S, id="short intervals: as it is set"),
        pytest.param(0.1, {}, 30.0, id="three intervals, where that is longer"),
        pytest.param(1.0, {"telemetry": 0.05}, 60.0, id="the slowest class counts"),
        pytest.param(1 / 3000, {}, INTERVAL_S_MAX, id="no longer than advice may live"),
    ],
)
def test_a_lease_outlives_the_longest_interval(rate: float, classes: dict[str, float], lifetime_s: float) -> None:
    _, proposal = advised(Standing(), verdict(rate, classes=classes), 0.0)
    assert advice(proposal).lifetime_s == pytest.approx(lifetime_s)


def test_a_rate_below_the_slowest_is_the_longest_interval() -> None:
    _, proposal = advised(Standing(), verdict(1e-9, classes={"telemetry": 1e-12}), 0.0)
    assert advice(proposal).interval_s == advice(proposal).classes["telemetry"] == INTERVAL_S_MAX
    msgspec.convert(msgspec.to_builtins(advice(proposal)), Advice)


FIRST = verdict(0.5, classes={"alarm": None, "telemetry": 0.25}, dead_bands={"door": 3.0})


@pytest.mark.parametrize(
    ("after", "is_decision"),
    [
        pytest.param(FIRST, False, id="the same"),
        pytest.param(verdict(0.495, classes=FIRST.classes, dead_bands=FIRST.dead_bands), False, id="by 1 %"),
        pytest.param(verdict(0.48, classes=FIRST.classes, dead_bands=FIRST.dead_bands), True, id="by 4 %"),
        pytest.param(
            verdict(0.5, classes={"alarm": None, "telemetry": 0.26}, dead_bands=FIRST.dead_bands), True, id="one class"
        ),
        pytest.param(
            verdict(0.5, classes={"alarm": 100.0, "telemetry": 0.25}, dead_bands=FIRST.dead_bands),
            True,
            id="a class that was not held at all is now, if only a little",
        ),
        pytest.param(verdict(0.5, classes=FIRST.classes, dead_bands={"door": 3.2}), True, id="a dead band"),
        pytest.param(verdict(0.5, classes=FIRST.classes, dead_bands={"door": 3.01}), False, id="a dead band, hardly"),
        pytest.param(verdict(0.5, classes=FIRST.classes), True, id="no dead band any more"),
        pytest.param(
            verdict(0.5, classes={**FIRST.classes, "meter": 0.5}, dead_bands=FIRST.dead_bands),
            False,
            id="a new class with what those without a class have: it has it already",
        ),
        pytest.param(
            verdict(0.5, classes={**FIRST.classes, "meter": 0.4}, dead_bands=FIRST.dead_bands),
            True,
            id="a new class with another interval",
        ),
        pytest.param(
            verdict(0.5, classes=FIRST.classes, dead_bands={"door": 3.0, "window": 1.0}),
            False,
            id="a band of 1 is none",
        ),
    ],
)
def test_what_is_a_change(after: Verdict, is_decision: bool) -> None:
    _, proposal = advised(decided(FIRST), after, 1.0)
    assert (proposal is not None) is is_decision
    assert proposal is None or proposal.recorded


def test_small_changes_add_up_to_a_decision() -> None:
    """Each step is below 2 %; it is held against what devices were told, not against the step before it."""
    given, decisions = decided(verdict(0.5)), 0
    for step in range(1, 11):
        given, proposal = advised(given, verdict(0.5 * 0.99**step), 0.1 * step)
        decisions += proposal is not None
    assert decisions == 5
    assert interval_of(paces(given.values), EVERYBODY) == pytest.approx(2.0 / 0.99**10, rel=0.02)


@pytest.mark.parametrize(
    "wanted",
    [
        pytest.param(verdict(0.5), id="an interval"),
        pytest.param(verdict(None, classes={"telemetry": 0.5}), id="of a class alone"),
        pytest.param(verdict(None, dead_bands={"door": 2.0}), id="a dead band alone"),
    ],
)
def test_whatever_holds_somebody_is_renewed_for_as_long_as_it_does(wanted: Verdict) -> None:
    given, renewed = decided(wanted), []
    for second in range(1, 101):
        given, proposal = advised(given, wanted, float(second))
        if proposal is not None:
            assert not proposal.recorded
            renewed.append(second)
    assert renewed == list(range(3, 100, 3))


def test_a_withdrawal_is_repeated_for_a_lifetime_and_then_there_is_silence() -> None:
    given, said = decided(verdict(1.0)), []
    for second in range(1, 60):
        given, proposal = advised(given, verdict(None), float(second))
        if proposal is not None:
            said.append((second, proposal.recorded, advice(proposal).interval_s))
    assert said == [(1, True, 0.0), (4, False, 0.0), (7, False, 0.0)]


def test_a_withdrawal_is_heard_while_a_lease_of_the_advice_before_it_may_be_left() -> None:
    """Devices that send every 20 s have a lease of 60 s and hear the withdrawal with their next message only."""
    given = decided(verdict(0.05))
    left_until_s = given.lifetime_s
    known_until_s = 0.0  # to gateways, as the bus keeps it
    for second in range(1, 90):
        given, proposal = advised(given, verdict(None), float(second))
        if proposal is not None:
            known_until_s = second + advice(proposal).lifetime_s
    assert known_until_s >= left_until_s


def test_in_shadow_a_change_is_said_once_and_holds_nobody() -> None:
    given, proposal = advised(Standing(), FIRST, 0.0, acts=False)
    assert proposal is not None
    assert (proposal.acts, proposal.recorded) == (False, True)
    assert given.kept_to(1.0) == {}
    assert [advised(given, FIRST, float(second), acts=False)[1] for second in range(1, 60)] == [None] * 59


def test_who_may_act_again_tells_devices_what_was_only_a_shadow() -> None:
    given = decided(FIRST, acts=False)
    given, proposal = advised(given, FIRST, 1.0)
    assert proposal is not None
    assert (proposal.acts, proposal.recorded) == (True, True)
    held = paces(given.kept_to(1.0))
    assert (held["alarm"].interval_s, held["telemetry"].interval_s) == (0.0, 4.0)


@pytest.mark.parametrize(
    "wanted",
    [
        pytest.param(verdict(0.5), id="an interval"),
        pytest.param(verdict(None, classes={"telemetry": 0.5}), id="of a class alone"),
        pytest.param(verdict(None, dead_bands={"door": 2.0}), id="a dead band alone"),
    ],
)
def test_shadow_begins_with_what_devices_still_keep_to(wanted: Verdict) -> None:
    """The lease that is left says the same, so there is nothing to decide until it has lapsed."""
    given = decided(wanted)
    said = []
    for second in range(1, 20):
        given, proposal = advised(given, wanted, float(second), acts=False)
        said += [] if proposal is None else [(second, proposal.acts)]
    assert said == [(9, False)]


@pytest.mark.parametrize(
    ("wanted", "holds"),
    [
        (verdict(None), False),
        (verdict(None, classes={"alarm": None}, dead_bands={"door": 1.0}), False),
        (verdict(0.5), True),
        (verdict(None, classes={"telemetry": 0.5}), True),
        (verdict(None, dead_bands={"door": 1.5}), True),
    ],
)
def test_a_sentence_says_that_devices_are_free_only_where_all_are(wanted: Verdict, holds: bool) -> None:
    _, proposal = advised(decided(FIRST), wanted, 1.0)
    assert proposal is not None
    assert proposal.sentence.startswith("Devices return to their default") is not holds


# -- the number of processing nodes


def asked(nodes: int, at_s: float = 0.0, *, acted: bool = True) -> Standing:
    return Standing(values={"": Count(nodes=nodes)}, told_at_s=at_s, acted=acted)


def scaled(
    before: Standing, wanted: int | None, at_s: float, *, nodes_working: int = 1, starting: int = 0, acts: bool = True
) -> tuple[Standing, Proposal | None]:
    known = knowledge(at_s, {"nodes": before}, nodes_working=nodes_working, starting=starting)
    said = verdict(None, nodes_wanted=wanted, demand_per_s=1234.5)
    return planned("nodes", before, said, known, Mode(nodes="acting" if acts else "shadow"))


def nodes_wanted(proposal: Proposal | None) -> int:
    assert proposal is not None
    assert isinstance(proposal.action, ScaleNodes)
    return proposal.action.nodes_wanted


def test_who_wants_no_number_leaves_it_alone() -> None:
    assert scaled(asked(3), None, 100.0) == (Standing(), None)


@pytest.mark.parametrize(("nodes_working", "starting"), [(2, 0), (1, 1)])
def test_the_first_number_is_no_decision_where_so_many_run_already(nodes_working: int, starting: int) -> None:
    after, proposal = scaled(Standing(), 2, 100.0, nodes_working=nodes_working, starting=starting)
    assert (after.values, proposal) == ({"": Count(nodes=2)}, None)


@pytest.mark.parametrize(
    ("wanted", "running", "change"), [(3, 1, "1 run: more are wanted"), (1, 2, "2 run: fewer are wanted")]
)
def test_another_number_is_one_decision(wanted: int, running: int, change: str) -> None:
    after, proposal = scaled(asked(running), wanted, 100.0, nodes_working=running)
    assert proposal is not None
    assert (proposal.acts, proposal.recorded, nodes_wanted(proposal)) == (True, True, wanted)
    assert f"({change}) because devices want to send 1,234 msg/s, one takes 50." in proposal.sentence
    assert scaled(after, wanted, 101.0, nodes_working=running, starting=max(0, wanted - running)) == (after, None)


def test_a_number_that_runs_already_is_not_called_more_or_fewer() -> None:
    """One node was wanted, the second is still being emptied, and now two are wanted again."""
    _, proposal = scaled(asked(1, 90.0), 2, 100.0, nodes_working=2)
    assert proposal is not None
    assert "2 run: fewer are wanted" not in proposal.sentence
    assert "2 run: more are wanted" not in proposal.sentence


def test_what_was_asked_for_in_vain_is_asked_for_again() -> None:
    state, said = Standing(), []
    for second in range(100, 131):
        state, proposal = scaled(state, 2, float(second))
        said += [] if proposal is None else [second]
    assert said == [100, 110, 120, 130]


def test_a_node_that_starts_was_not_asked_for_in_vain() -> None:
    state, _ = scaled(Standing(), 2, 100.0)
    for second in range(101, 160):
        state, proposal = scaled(state, 2, float(second), starting=1)
        assert proposal is None


def test_a_node_that_died_is_asked_for_again() -> None:
    state, _ = scaled(Standing(), 2, 100.0, nodes_working=2)
    _, proposal = scaled(state, 2, 101.0, nodes_working=1)
    assert nodes_wanted(proposal) == 2


@pytest.mark.parametrize(("wanted", "running"), [(3, 1), (1, 3)], ids=["more", "fewer"])
def test_what_was_wanted_in_shadow_is_asked_for_when_it_may_be(wanted: int, running: int) -> None:
    state, proposal = scaled(Standing(), wanted, 100.0, nodes_working=running, acts=False)
    assert proposal is not None
    assert not proposal.acts
    _, proposal = scaled(state, wanted, 111.0, nodes_working=running)
    assert proposal is not None
    assert proposal.acts
    assert nodes_wanted(proposal) == wanted


def test_in_shadow_a_number_is_said_once() -> None:
    """Nobody was asked, so nobody was asked in vain."""
    state, said = Standing(), []
    for second in range(100, 160):
        state, proposal = scaled(state, 2, float(second), acts=False)
        said += [] if proposal is None else [second]
    assert said == [100]
