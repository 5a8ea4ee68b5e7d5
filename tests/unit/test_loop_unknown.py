"""What is not known is no zero: classes that have just begun to be counted, and values that are no numbers."""

import math

import msgspec
import pytest

from tidegate.control.send_rate.gotin import Gotin, GotinSettings
from tidegate.loop.events import OVERLOAD, Event, EventRule
from tidegate.loop.machine import ControlLoop
from tidegate.loop.monitors import Ranges, measured
from tidegate.loop.policies.nodes import NodeCount
from tidegate.loop.policies.send_rate import SendRate
from tidegate.loop.rules import RuleSet
from tidegate.loop.state import LoopState
from tidegate.loop.window import Window
from tidegate.model.decisions import Mode
from tidegate.model.observations import ClassState, GatewayState, NodeState, Observation, SliceState

RULES = {
    "ranges": {"head_age_s": [2, 10]},
    "events": {"silent": {"of": "classes", "when": "arrival_per_s < 1"}},
}


class Chain:
    """100 devices of one class, which send a message a second each; one gateway counts them."""

    def __init__(self) -> None:
        overload = Event(EventRule(when="head_age_s > 1"))
        policies = (SendRate(Gotin(GotinSettings()), lifetime_s=9.0), NodeCount())
        rules = msgspec.convert(RULES, RuleSet)
        self.loop = ControlLoop(policies, {OVERLOAD: overload}, window_s=3.0, rules=rules)
        self.at_s, self.restarted_s = 1_000.0, 0.0

    def round(self, head_age_s: float = 0.0, devices: int = 100, **more: ClassState) -> dict[str, dict[str, float]]:
        self.at_s += 1.0
        counted = ClassState(devices=100, publishes=round(100 * (self.at_s - self.restarted_s)))
        gateway = GatewayState(
            name="g",
            address="h:1",
            measured_at_s=self.at_s,
            connections=100,
            publishes=0,
            acknowledged=0,
            advised=0,
            classes={"meter": counted, **more},
        )
        total = round(100 * self.at_s)
        seen = Observation(
            at_s=self.at_s,
            arrived=total,
            committed=total - 50,
            head_age_s=head_age_s,
            devices=devices,
            gateways=(gateway,),
            nodes=(NodeState(name="n", alive=True, slices=(0,), rows=total, full=head_age_s > 1),),
        )
        outcome = self.loop.tick(seen, Mode())
        self.loop.carried_out(outcome.proposals)
        assert outcome.knowledge is not None
        return outcome.knowledge.properties

    @property
    def is_silent(self) -> bool:
        return self.loop.state.events["silent"].active


def warm() -> Chain:
    chain = Chain()
    for _ in range(6):
        found = chain.round()
    assert found["class/meter"] == {"devices": 100.0, "arrival_per_s": pytest.approx(100)}
    return chain


@pytest.mark.parametrize("head_age_s", [0.0, 3.0])
def test_a_gateway_that_restarts_silences_no_class(head_age_s: float) -> None:
    chain = warm()
    chain.restarted_s = chain.at_s
    assert chain.round(head_age_s)["class/meter"] == {"devices": 100.0}
    assert not chain.is_silent
    assert chain.round(head_age_s)["class/meter"]["arrival_per_s"] == pytest.approx(100)


def test_a_class_that_appears_is_not_silent() -> None:
    chain = warm()
    found = chain.round(door=ClassState(devices=5, publishes=9_000))
    assert found["class/door"] == {"devices": 5.0}
    assert not chain.is_silent


def test_a_property_that_is_not_known_stays_in_its_range() -> None:
    ranges = Ranges({"classes.arrival_per_s": (50.0,)})
    before = ranges.levels({"class/a": {"arrival_per_s": 90.0}, "class/b": {"arrival_per_s": 90.0}})
    assert ranges.levels({"class/a": {"devices": 9.0}}, before) == {"class/a.arrival_per_s": 1}, "b has gone"


# -- values that are no numbers


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf, -5.0])
def test_an_age_that_is_none_is_not_known(wrong: float) -> None:
    chain = warm()
    for _ in range(3):
        chain.round(head_age_s=3.0)
    state = chain.loop.state
    for _ in range(3):
        assert "head_age_s" not in chain.round(head_age_s=wrong)["chain"]
        written = msgspec.json.encode(chain.loop.state)
        assert msgspec.json.decode(written, type=LoopState) == chain.loop.state, "the next leader can read it"
    assert chain.loop.state.events == state.events
    assert chain.loop.state.ranges == state.ranges
    assert chain.round(head_age_s=0.0)["chain"]["head_age_s"] == 0.0


def test_a_negative_count_is_not_known() -> None:
    chain = warm()
    found = chain.round(head_age_s=3.0, devices=-7, door=ClassState(devices=-1, publishes=3))
    assert not {"devices", "device_rate_per_s"} & found["chain"].keys()
    assert found["class/door"] == {}


def test_of_every_source_what_is_no_number_is_left_out() -> None:
    window = Window(3.0)
    node = NodeState(name="n", alive=True, slices=(0,), rows=0)
    for second in range(5):
        wrong = math.nan if second == 3 else math.inf if second == 4 else float(second)
        seen = Observation(
            at_s=float(second),
            arrived=0,
            committed=0,
            queued=-3,
            head_age_s=0.0,
            devices=1,
            nodes=(msgspec.structs.replace(node, limit_rows=wrong, limit_s=wrong),),
            slices=(SliceState(number=1, waiting=-1, age_s=math.nan),),
        )
        window.add(seen)
    found = measured(seen, window, interval_s=0.0)
    assert found["slice/1"] == {}
    assert "waiting" not in found["chain"]
    assert all(math.isfinite(value) and value >= 0 for one in found.values() for value in one.values())


def test_work_is_known_again_after_a_counter_that_was_no_number() -> None:
    window, node = Window(3.0), NodeState(name="n", alive=True, slices=(0,), rows=0)
    for second in range(12):
        did = math.nan if second == 3 else math.inf if second == 5 else float(second)
        one = msgspec.structs.replace(node, limit_rows=50 * did, limit_s=did)
        window.add(Observation(at_s=second, arrived=0, committed=0, head_age_s=0.0, devices=1, nodes=(one,)))
    assert (window.work().node_rate_per_s, window.work().busy_share) == (50.0, 1.0)


@pytest.mark.parametrize("at_s", [math.nan, math.inf])
def test_a_moment_that_is_none_decides_nothing(at_s: float) -> None:
    chain = warm()
    state = chain.loop.state
    wrong = Observation(at_s=at_s, arrived=200_000, committed=0, head_age_s=9.0, devices=100)
    assert chain.loop.tick(wrong, Mode()).proposals == ()
    assert chain.loop.state == state
    assert chain.round()["class/meter"]["arrival_per_s"] == pytest.approx(100)
