"""Actions are checked: what shows is reported, what does not is taken back and not made again for a while."""

import random

import msgspec
import pytest

from tidegate.loop.effects import COOLING_S, GIVEN_UP
from tidegate.loop.families import HEARD_S, NODES_S, SHOWN_SHARE
from tidegate.loop.knowledge import Knowledge
from tidegate.loop.planner import Planned, Planner, PlannerState
from tidegate.loop.promises import Promises
from tidegate.loop.wishes import Wish, Withheld
from tidegate.model.actions import Action, Advise, MoveSlices, ScaleNodes
from tidegate.model.decisions import Mode
from tidegate.model.intents import EVERYBODY, Count, Intent, Owner, Pace, Priority, Reason, Value
from tidegate.model.notices import EffectReport, sentence
from tidegate.model.observations import NodeState

REASON = Reason(rule="a test", rejected="nothing", because="so")


class Chain:
    """A planner with wishes that a test names; what is measured is what a test says."""

    def __init__(self) -> None:
        self.state, self.at_s = PlannerState(), 1_000.0
        self.seen = {"arrival_per_s": 20.0, "device_rate_per_s": 2.0, "devices": 10.0}
        self.seen |= {"nodes_working": 1.0, "nodes_starting": 0.0, "busy_share": 1.0}
        self.classes: dict[str, dict[str, float]] = {}
        self.reports: list[EffectReport] = []
        self.withheld: tuple[Withheld, ...] = ()
        self.held = {"node-1": 64, "node-2": 0}

    def round(self, mode: Mode | None = None, priority: Priority = Priority.BALANCE, **wanted: Value) -> list[Action]:
        """A second passes; what is decided."""
        self.at_s += 1.0
        wished: dict[str, list[Wish]] = {}
        for resource, value in wanted.items():
            family, _, member = resource.replace("send_rate", "send-rate").partition("__")
            intent = Intent(
                resource=f"{family}/{member}" if member else family,
                wanted=value,
                priority=priority,
                reason=REASON,
                lifetime_s=10.0 if family == "send-rate" else 0.0,
            )
            wish = wished.setdefault(family, [Wish("a test", "", {})])[0]
            wish.intents[EVERYBODY if member == "all" else member] = intent
        planned: Planned = Planner(Promises()).step(self.state, wished, self.knowledge(), mode or Mode())
        self.state, self.withheld = planned.state, planned.withheld
        self.reports += planned.reports
        return [one.action for one in planned.proposals if one.recorded and one.acts]

    def knowledge(self) -> Knowledge:
        counts = {name: {"slices": float(count)} for name, count in self.held.items()}
        nodes, first = [], 0
        for name, count in self.held.items():
            nodes.append(NodeState(name=name, alive=True, slices=tuple(range(first, first + count)), rows=0))
            first += count
        return Knowledge(
            at_s=self.at_s,
            measured_at_s=self.at_s,
            complete=True,
            properties={
                "chain": dict(self.seen),
                **{f"node/{name}": one for name, one in counts.items()},
                **{f"class/{name}": one for name, one in self.classes.items()},
            },
            in_force=self.state.in_force,
            nodes=tuple(nodes),
        )


HELD = {"send_rate__all": Pace(interval_s=5.0)}


def intervals(actions: list[Action]) -> list[float]:
    return [action.advice.interval_s for action in actions if isinstance(action, Advise)]


def test_an_effect_that_shows_is_reported_once() -> None:
    chain = Chain()
    assert intervals(chain.round(**HELD)) == [5.0]
    chain.seen["device_rate_per_s"] = 0.4
    for _ in range(9):
        assert chain.round(**HELD) == []
    (report,) = chain.reports
    assert (report.shown, report.value, report.expects.quantity) == (True, 0.4, "device_rate_per_s")
    assert report.plan == "1"


def test_half_of_the_devices_may_be_deaf() -> None:
    chain = Chain()
    chain.round(**HELD)
    chain.seen["device_rate_per_s"] = 0.5 * 2.0 + 0.5 * 0.2
    for _ in range(6):
        chain.round(**HELD)
    assert [one.shown for one in chain.reports] == [True]


@pytest.mark.parametrize(("deaf", "shown"), [(0.0, True), (0.5, True), (0.8, True), (1.0, False)])
def test_a_flood_that_still_rises_when_it_is_met_is_judged_from_its_highest(deaf: float, shown: bool) -> None:
    """Its devices are counted at once, and what they send a window later: what each sends is under-measured."""
    chain = Chain()
    chain.seen["device_rate_per_s"] = 0.5
    chain.round(**HELD)
    for rate in (1.0, 1.5, 2.0, *[deaf * 2.0 + (1 - deaf) * 0.2] * 40):
        chain.seen["device_rate_per_s"] = rate
        chain.round(**HELD)
    assert [one.shown for one in chain.reports] == [shown]


def test_advice_that_nobody_follows_is_taken_back_and_not_given_again_for_a_while() -> None:
    chain, decided = Chain(), []
    for second in range(400):
        decided += [(second, interval_s) for interval_s in intervals(chain.round(**HELD))]
    within_s = 1.5 + HEARD_S
    first, back, again = decided[:3]
    assert first == (0, 5.0)
    assert back[1] == 0.0
    assert within_s <= back[0] <= within_s + 2
    assert again[1] == 5.0
    assert again[0] - back[0] >= COOLING_S
    assert [one.shown for one in chain.reports[:1]] == [False]


def test_what_cools_down_is_said_with_what_is_done_in_its_place() -> None:
    chain = Chain()
    for _ in range(25):
        chain.round(**HELD)
    (withheld,) = [one for one in chain.withheld if one.constraint == "cool-down"]
    assert (withheld.wanted, withheld.done) == (Pace(interval_s=5.0), Pace(interval_s=0.0))
    assert "not done because decision 1 was to bring device_rate_per_s of chain at most" in withheld.sentence


def test_advice_that_changes_little_is_not_judged() -> None:
    chain = Chain()
    for _ in range(60):
        chain.round(send_rate__all=Pace(interval_s=0.6))
    assert chain.reports == []
    assert chain.state.checks == {}


def test_a_class_of_few_devices_does_not_have_to_show_in_all() -> None:
    chain = Chain()
    chain.classes = {"camera": {"devices": 1.0, "arrival_per_s": 2.0}}
    chain.round(send_rate__camera=Pace(interval_s=100.0))
    assert chain.state.checks == {}
    chain.classes = {"camera": {"devices": 9.0, "arrival_per_s": 18.0}}
    chain.round(send_rate__camera=Pace(interval_s=50.0))
    assert chain.state.checks["send-rate"].expects.below == pytest.approx(2.0 - SHOWN_SHARE * 0.9 * (2.0 - 1 / 50))


def test_nodes_that_do_not_come_are_not_asked_for_any_more() -> None:
    chain, decided = Chain(), []
    for second in range(int(NODES_S) + 20):
        decided += [(second, action) for action in chain.round(nodes=Count(nodes=3))]
    assert [action for _, action in decided] == [ScaleNodes(nodes_wanted=3), ScaleNodes(nodes_wanted=1)]
    assert decided[1][0] == pytest.approx(NODES_S, abs=2)


def test_advice_that_is_followed_is_never_contradicted_however_it_changed_since() -> None:
    """It asked for much less first, of devices that were under-measured, and for a little less by now."""
    chain = Chain()
    chain.seen |= {"device_rate_per_s": 1.0, "arrival_per_s": 10.0}
    chain.round(**HELD)
    for _ in range(60):
        chain.seen |= {"device_rate_per_s": 0.96, "arrival_per_s": 9.6}
        chain.round(send_rate__all=Pace(interval_s=1.04))
    assert chain.state.cooling == {}
    assert [one.shown for one in chain.reports] == [True]


def test_what_comes_back_is_never_no_node_at_all() -> None:
    chain = Chain()
    chain.seen["nodes_working"] = 0.0
    decided = [one for _ in range(int(NODES_S) + 5) for one in chain.round(nodes=Count(nodes=2))]
    assert decided == [ScaleNodes(nodes_wanted=2), ScaleNodes(nodes_wanted=1)]


@pytest.mark.parametrize("amplitude", [0.05, 0.1])
def test_what_fluctuates_is_not_taken_for_an_effect(amplitude: float) -> None:
    """Nobody follows; what devices send goes up and down, every few seconds."""
    taken_for_shown, times = 0, 40
    for seed in range(times):
        chain, chance, level = Chain(), random.Random(seed), 1.0
        chain.round(send_rate__all=Pace(interval_s=1 / 1.3))
        for _ in range(120):
            level += 0.4 * (1 - level) + 0.85 * chance.uniform(-amplitude, amplitude)
            chain.seen["device_rate_per_s"] = 2.0 * level
            chain.round(send_rate__all=Pace(interval_s=1 / 1.3))
        taken_for_shown += chain.reports[0].shown
    assert taken_for_shown <= times / 3


def test_a_slice_does_not_go_back_to_a_node_that_is_gone_and_others_go_where_they_shall() -> None:
    chain = Chain()
    for _ in range(70):
        chain.round(slice__1=Owner(node="node-2"))
    assert chain.state.cooling
    chain.held = {"node-2": 64}
    moved = [
        one for _ in range(20) for one in chain.round(slice__1=Owner(node="node-3"), slice__9=Owner(node="node-3"))
    ]
    assert moved == [MoveSlices(takers={1: "node-3", 9: "node-3"})]


def test_what_cannot_be_measured_contradicts_nothing() -> None:
    chain = Chain()
    chain.round(**HELD)
    del chain.seen["device_rate_per_s"]
    for _ in range(100):
        chain.round(**HELD)
    assert chain.reports == []


def test_a_clock_that_went_far_ahead_does_not_cool_for_ever() -> None:
    chain = Chain()
    for _ in range(25):
        chain.round(**HELD)
    assert chain.state.cooling
    chain.at_s -= 10_000
    chain.round(**HELD)
    assert chain.state.cooling["send-rate"].until_s == chain.at_s + COOLING_S, "as long as it would have been"
    chain.at_s += COOLING_S
    chain.round(**HELD)
    assert not chain.state.cooling


def moves(first: int, count: int) -> dict[str, Value]:
    return {f"slice__{number}": Owner(node="node-2") for number in range(first, first + count)}


def moved(actions: list[Action]) -> int:
    return sum(len(action.takers) for action in actions if isinstance(action, MoveSlices))


def test_what_is_moved_has_one_budget() -> None:
    chain = Chain()
    chain.held = {"node-1": 1_000, "node-2": 0}
    assert moved(chain.round(**moves(0, 100))) == 100
    assert moved(chain.round(**moves(200, 100))) == 0
    assert {one.constraint for one in chain.withheld} == {"budget"}
    assert "too much has been moved lately" in chain.withheld[0].sentence
    waited_s = 0
    while not moved(chain.round(**moves(200, 100))):
        waited_s += 1
    assert 30 <= waited_s <= 40
    protects = moved(chain.round(priority=Priority.PROTECT_CHAIN, **moves(400, 100)))
    assert protects == 100, "what protects the chain is not kept waiting"


def test_a_cohort_is_always_the_same_and_nodes_come_one_by_one() -> None:
    chain, mode = Chain(), Mode(slices="cohort", nodes="cohort", send_rate="cohort", cohort_share=0.25)
    first = chain.round(mode, **moves(0, 64))
    (action,) = [one for one in first if isinstance(one, MoveSlices)]
    assert 6 <= len(action.takers) <= 26
    again = Chain().round(mode, **moves(0, 64))
    assert again == first
    assert chain.round(mode, nodes=Count(nodes=4)) == [ScaleNodes(nodes_wanted=2)]
    (advise,) = chain.round(mode, **HELD)
    assert isinstance(advise, Advise)
    assert advise.advice.share == 0.25
    (everybody,) = chain.round(Mode(), **HELD)
    assert isinstance(everybody, Advise)
    assert everybody.advice.share == 1.0, "others are meant now: it is told again"


def test_of_what_is_under_way_nothing_else_is_decided() -> None:
    chain = Chain()
    intent = Intent(resource="nodes", wanted=Count(nodes=2), priority=Priority.BALANCE, reason=REASON)
    wished = {"nodes": [Wish("a test", "", {"": intent})]}
    planned = Planner(Promises()).step(chain.state, wished, chain.knowledge(), Mode(), {"nodes"})
    assert planned.proposals == ()
    assert [one.constraint for one in planned.withheld] == ["under way"]
    state = msgspec.json.decode(msgspec.json.encode(planned.state), type=PlannerState)
    assert Planner(Promises()).step(state, wished, chain.knowledge(), Mode()).proposals


def test_nobody_begins_to_be_held_while_no_node_is_at_its_limit() -> None:
    chain = Chain()
    chain.seen["busy_share"] = 0.1
    assert chain.round(**HELD) == []
    assert [(one.constraint, one.done) for one in chain.withheld] == [("promise", None)]
    assert chain.withheld[0].sentence.endswith("not done because no node is at its limit.")
    assert intervals(chain.round(priority=Priority.PROTECT_DATA, **HELD)) == [5.0], "an operator's rule needs no proof"
    assert chain.round(**HELD) == [], "who is held stays held"


def test_an_effect_that_nobody_can_measure_is_given_up_and_takes_nothing_back() -> None:
    chain = Chain()
    assert intervals(chain.round(**HELD)) == [5.0]
    del chain.seen["device_rate_per_s"]
    for _ in range(int(GIVEN_UP * (1.5 + HEARD_S)) + 2):
        assert chain.round(**HELD) == []
    (report,) = chain.reports
    assert (report.shown, report.value, report.cooling_s) == (False, None, 0.0)
    assert "was not measured" in sentence(report)
    chain.seen["device_rate_per_s"] = 2.0
    chain.round(send_rate__all=Pace(interval_s=9.0))
    assert "send-rate" in chain.state.checks, "the next decision is checked again"


def test_what_is_withdrawn_is_not_contradicted() -> None:
    chain = Chain()
    chain.round(nodes=Count(nodes=3))
    chain.round(nodes=Count(nodes=1))
    assert not chain.state.checks
    for _ in range(int(NODES_S) + 20):
        chain.round(nodes=Count(nodes=1))
    assert not any(report.cooling_s for report in chain.reports)
    assert chain.round(nodes=Count(nodes=3)) == [ScaleNodes(nodes_wanted=3)]


def test_the_next_scale_up_is_checked_too() -> None:
    chain = Chain()
    chain.round(nodes=Count(nodes=2))
    chain.seen["nodes_starting"] = 1.0
    chain.round(nodes=Count(nodes=3))
    chain.seen["nodes_working"] = 2.0
    decided: list[Action] = []
    for _ in range(int(NODES_S) + 20):
        decided += chain.round(nodes=Count(nodes=3))
    assert [one.shown for one in chain.reports] == [False]
    assert decided == [ScaleNodes(nodes_wanted=2)], "the third never came, and is not waited for"


def test_a_scale_down_that_does_not_show_is_taken_back() -> None:
    chain, decided = Chain(), list[Action]()
    chain.seen["nodes_working"] = 3.0
    for _ in range(int(NODES_S) + 20):
        decided += chain.round(nodes=Count(nodes=1))
    assert decided == [ScaleNodes(nodes_wanted=1), ScaleNodes(nodes_wanted=3)]


def test_time_in_which_nothing_was_decided_does_not_count() -> None:
    chain = Chain()
    chain.round(**HELD)
    chain.at_s += 300.0  # frozen, or without a leader
    chain.round(**HELD)
    assert chain.reports == []
    assert "send-rate" in chain.state.checks


@pytest.mark.parametrize(
    ("moved", "slices"),
    [
        pytest.param({"slice__0": "node-1", "slice__70": "node-1"}, 65, id="one of two is there already"),
        pytest.param({"slice__0": "node-2", "slice__70": "node-1"}, 64, id="a swap"),
    ],
)
def test_of_moves_only_what_changes_is_expected(moved: dict[str, str], slices: int) -> None:
    chain = Chain()
    chain.held = {"node-1": 64, "node-2": 10}
    wanted: dict[str, Value] = {name: Owner(node=node) for name, node in moved.items()}
    chain.round(**wanted)
    effect = chain.state.checks["slice"].expects
    assert (effect.source, effect.above) in {("node/node-1", slices), ("node/node-2", 10)}
