"""Several that want something at once: rules beside rules, rules beside policies, and a word that reaches nobody."""

import msgspec

from tidegate.controller.settings import ControllerSettings
from tidegate.loop.machine import ControlLoop
from tidegate.loop.rules import RuleSet
from tidegate.loop.state import LoopState
from tidegate.model.actions import Action, Advise, ScaleNodes
from tidegate.model.classes import DeviceClass
from tidegate.model.decisions import Mode, Proposal
from tidegate.model.intents import Algorithm
from tidegate.model.observations import ClassState, GatewayState, NodeState, Observation

CLASSES = (DeviceClass(name="door", topics=("door/#",)), DeviceClass(name="meter", topics=("#",)))
FLOODED = {"arrive": 1_000, "commit": 100, "age_s": 3.0, "devices": 1_000, "at_limit": True}
CALM = {"arrive": 50, "commit": 5_000, "age_s": 0.1, "devices": 1_000}
MANY = {"many": {"when": "devices > 500"}}


class Chain:
    """Half a second a round; what is measured in it is what a test says."""

    def __init__(self, rules: object = None, policy: str = "gotin") -> None:
        self._settings = ControllerSettings(policy=policy, nodes_max=4)
        self.rules = msgspec.convert(rules or {}, RuleSet)
        self.loop = self._new_loop()
        self.at_s, self.arrived, self.committed, self.limit_s = 1_000.0, 0, 0, 0.0
        self.nodes = 1
        self.failing: str | None = None
        self.done: list[Action] = []

    def _new_loop(self) -> ControlLoop:
        return self._settings.control_loop(CLASSES, self.rules)

    def taken_over(self) -> None:
        """By a controller that has measured nothing yet."""
        stored = msgspec.json.encode(self.loop.state)
        self.loop = self._new_loop()
        self.loop.resume(msgspec.json.decode(stored, type=LoopState))

    def rounds(
        self,
        count: int,
        *,
        arrive: int = 100,
        commit: int = 100,
        age_s: float = 0.0,
        devices: int = 100,
        at_limit: bool = False,
        mode: Mode | None = None,
    ) -> list[Proposal]:
        """So many messages arrive and are committed a second; what was decided."""
        proposed = []
        for _ in range(count):
            self.at_s += 0.5
            self.arrived += arrive // 2
            self.committed = min(self.arrived, self.committed + commit // 2)
            self.limit_s += 0.5 * at_limit
            node = NodeState(
                name="node-0",
                alive=True,
                slices=(0, 1),
                rows=self.committed,
                limit_rows=commit * self.limit_s,
                limit_s=self.limit_s,
                full=at_limit,
            )
            meters = ClassState(devices=devices - 10, publishes=self.arrived)
            gateway = GatewayState(
                name="gateway-1",
                address="127.0.0.1:1",
                measured_at_s=self.at_s,
                connections=devices,
                publishes=self.arrived,
                acknowledged=self.arrived,
                advised=0,
                classes={"door": ClassState(devices=10, publishes=0), "meter": meters},
            )
            others = (NodeState(name=f"node-{n}", alive=True, slices=(), rows=0) for n in range(1, self.nodes))
            seen = Observation(
                at_s=self.at_s,
                arrived=self.arrived,
                committed=self.committed,
                head_age_s=age_s,
                devices=devices,
                gateways=(gateway,),
                nodes=(node, *others) if self.nodes else (),
            )
            outcome = self.loop.tick(seen, mode or Mode())
            self.loop.told({one.plan: self.failing for one in outcome.proposals})
            self.done += [one.action for one in outcome.proposals if one.acts and self.failing is None]
            proposed += outcome.proposals
        return proposed

    @property
    def intervals(self) -> list[float]:
        return [action.advice.interval_s for action in self.done if isinstance(action, Advise)]

    @property
    def algorithm(self) -> Algorithm:
        found = self.loop.state.planner.in_force["policy"].values["send-rate"]
        assert isinstance(found, Algorithm)
        return found


def rule(name: str, on: str, *steps: object) -> dict[str, object]:
    return {"name": name, "on": on, "plan": list(steps)}


def test_a_word_that_reaches_nobody_while_devices_recover_releases_nobody() -> None:
    chain = Chain()
    chain.rounds(8)
    chain.rounds(6, **FLOODED)  # type: ignore[arg-type]
    chain.rounds(6, **CALM)  # type: ignore[arg-type]
    held_s = chain.intervals[-1]
    assert held_s > 3
    chain.failing = "the bus is away"
    chain.rounds(1, **CALM)  # type: ignore[arg-type]
    chain.failing = None
    chain.rounds(1, **CALM)  # type: ignore[arg-type]
    assert held_s / 2 < chain.intervals[-1] < held_s


def test_words_that_reach_nobody_for_long_hold_nobody_in_the_end() -> None:
    """What was told before has lapsed then, and is said to have."""
    chain = Chain()
    chain.rounds(8)
    chain.rounds(6, **FLOODED)  # type: ignore[arg-type]
    chain.failing = "the bus is away"
    chain.rounds(600, **FLOODED)  # type: ignore[arg-type]
    assert chain.loop.state.planner.in_force["send-rate"].kept_to(chain.at_s) == {}


def test_a_rule_for_one_class_lets_nobody_go_while_a_new_leader_knows_too_little() -> None:
    chain = Chain({"events": MANY, "rules": [rule("doors", "many", {"send_every_s": {"door": 20}})]})
    chain.rounds(8)
    chain.rounds(10, **FLOODED)  # type: ignore[arg-type]
    assert chain.intervals[-1] > 5
    chain.taken_over()
    chain.done.clear()
    chain.rounds(10, **FLOODED)  # type: ignore[arg-type]
    assert 0.0 not in chain.intervals


def test_a_rule_for_everybody_comes_before_a_policy_that_names_classes() -> None:
    chain = Chain({"events": MANY, "rules": [rule("slow", "many", {"send_every_s": {"*": 30}})]}, policy="adaptive")
    chain.rounds(8)
    chain.rounds(10, **FLOODED)  # type: ignore[arg-type]
    advice = [action.advice for action in chain.done if isinstance(action, Advise)][-1]
    assert [advice.interval_of(one.name) for one in CLASSES] == [30.0, 30.0]


def test_a_plan_goes_back_to_what_was_so_before_all_rules() -> None:
    """The second begins while the first is in force, and ends after it: nobody wants what the first had wanted."""
    events = {"a": {"when": "devices > 500"}, "b": {"when": "head_age_s > 2"}}
    several = [
        rule("first", "a", {"policy": "none"}),
        rule("second", "b", {"policy": "gotin", "options": {"k_protect": 0.5}, "within_s": 3600}),
    ]
    chain = Chain({"events": events, "rules": several})
    chain.rounds(8)
    chain.rounds(4, devices=900)
    assert chain.algorithm.name == "none"
    chain.rounds(4, devices=900, age_s=3.0)
    chain.rounds(4, devices=100, age_s=3.0)
    assert chain.algorithm.options == {"k_protect": 0.5}
    chain.rounds(6)
    assert (chain.algorithm, chain.loop.state.runs) == (Algorithm(), ())


def test_in_shadow_each_rule_hears_that_its_own_step_was_not_done() -> None:
    several = [
        rule("one", "many", {"send_every_s": {"door": 30}}, {"nodes": 2}),
        rule("two", "many", {"send_every_s": {"meter": 30}}, {"nodes": 3}),
    ]
    chain = Chain({"events": MANY, "rules": several})
    chain.rounds(20, devices=900, mode=Mode(send_rate="shadow"))
    assert chain.done == []
    assert [run.withheld.split(" wants")[0] for run in chain.loop.state.runs] == ["rule one", "rule two"]


WAITING = rule("slow", "many", {"send_every_s": {"*": 30}, "until": "devices > 5000", "within_s": 3600}, {"nodes": 2})


def test_a_plan_whose_event_is_over_while_a_step_waits_is_taken_back() -> None:
    chain = Chain({"events": MANY, "rules": [WAITING]})
    chain.rounds(10, devices=900)
    chain.rounds(6, devices=100)
    assert (chain.intervals[0], chain.intervals[-1], chain.loop.state.runs) == (30.0, 0.0, ())


def test_so_is_one_whose_rule_is_gone() -> None:
    chain = Chain({"events": MANY, "rules": [WAITING]})
    chain.rounds(10, devices=900)
    chain.loop.follow(RuleSet(), applied_at_s=5.0)
    chain.rounds(6, devices=900)
    assert (chain.intervals[-1], chain.loop.state.runs) == (0.0, ())


def test_a_step_that_was_not_even_tried_is_not_tried_once_its_event_is_over() -> None:
    chain = Chain({"events": MANY, "rules": [WAITING]})
    chain.rounds(10, devices=900, mode=Mode(send_rate="shadow"))
    chain.rounds(6, devices=100, mode=Mode(send_rate="shadow"))
    chain.rounds(6, devices=100)
    assert (chain.done, chain.loop.state.runs) == ([], ())


def test_no_plan_goes_back_to_no_node_at_all() -> None:
    revive = rule("revive", "dead", {"nodes": 2})
    chain = Chain({"events": {"dead": {"when": "nodes_working == 0"}}, "rules": [revive]})
    chain.nodes = 0
    chain.rounds(10)
    chain.nodes = 2
    chain.rounds(10)
    assert [action.nodes_wanted for action in chain.done if isinstance(action, ScaleNodes)] == [2, 1]


def test_nodes_that_another_rule_says_stay_are_gone_back_to() -> None:
    stays = {**rule("stays", "many", {"nodes": 3, "until": "nodes_working >= 3", "within_s": 100}), "stays": True}
    more = rule("more", "old", {"nodes": 4})
    chain = Chain({"events": {**MANY, "old": {"when": "head_age_s > 2"}}, "rules": [more, stays]})
    chain.rounds(8)
    chain.rounds(4, devices=900)
    chain.rounds(4, devices=900, age_s=3.0)
    chain.nodes = 4
    chain.rounds(4, devices=900, age_s=3.0)
    chain.rounds(6, devices=900)
    assert [action.nodes_wanted for action in chain.done if isinstance(action, ScaleNodes)][-1] == 3


def test_of_two_rules_the_first_in_the_file_counts_whichever_began_first() -> None:
    events = {**MANY, "old": {"when": "head_age_s > 2"}}
    first = rule("first", "old", {"send_every_s": {"*": 5}})
    second = rule("second", "many", {"send_every_s": {"*": 60}})
    chain = Chain({"events": events, "rules": [first, second]}, policy="none")
    chain.rounds(10, devices=900)
    chain.rounds(6, devices=900, age_s=3.0)
    assert (chain.intervals[0], chain.intervals[-1]) == (60.0, 5.0)


def test_a_rule_that_is_taken_back_holds_nobody_again() -> None:
    """The overload is long over: what the policy had said before the rule began is not gone back to."""
    slow = rule("slow", "many", {"send_every_s": {"*": 1}})
    chain = Chain({"events": {"many": {"when": "devices > 1500"}}, "rules": [slow]})
    chain.rounds(8)
    chain.rounds(6, **FLOODED)  # type: ignore[arg-type]
    chain.rounds(6, **{**FLOODED, "devices": 2_000})  # type: ignore[arg-type]
    chain.rounds(100, arrive=10, commit=5_000, devices=2_000)
    chain.done.clear()
    chain.rounds(6, arrive=10, commit=5_000, devices=1_000)
    assert set(chain.intervals) <= {0.0}


def test_a_rule_for_one_class_is_no_proof_for_a_policy_that_wants_all_held() -> None:
    doors = rule("doors", "many", {"send_every_s": {"door": 5}})
    chain = Chain({"events": MANY, "rules": [doors]})
    chain.rounds(8)
    chain.rounds(10, **FLOODED)  # type: ignore[arg-type]
    assert chain.intervals[-1] > 0
    held = chain.loop.state.policies["send-rate"]
    calm = Chain({"events": MANY, "rules": [doors]})
    calm.rounds(8)
    calm.loop.resume(msgspec.structs.replace(calm.loop.state, policies={"send-rate": held}))
    calm.rounds(4, arrive=50, commit=5_000, devices=1_000)
    assert calm.loop.state.policies["send-rate"].finding.phase == "recover", "it wants to go on holding everybody"
    assert set(calm.intervals) == {0.0}


def test_time_in_which_all_is_frozen_is_not_the_plans() -> None:
    waiting = rule("slow", "many", {"send_every_s": {"*": 30}, "until": "devices > 5000", "within_s": 60})
    chain = Chain({"events": MANY, "rules": [waiting]})
    chain.rounds(10, devices=900)
    chain.rounds(200, devices=900, mode=Mode(frozen=True))
    chain.rounds(4, devices=900)
    assert [run.state for run in chain.loop.state.runs] == ["doing"]
    chain.rounds(120, devices=900)
    assert chain.loop.state.runs == ()


def test_an_outage_of_seconds_does_not_stop_a_rule_for_good() -> None:
    chain = Chain({"events": MANY, "rules": [rule("slow", "many", {"send_every_s": {"*": 30}})]})
    for _ in range(2):
        chain.rounds(10, devices=900)
        chain.failing = "the bus is away"
        chain.rounds(6, devices=100)
        chain.failing = None
        chain.rounds(6, devices=100)
        assert chain.loop.state.runs == ()
    assert chain.intervals.count(30.0) >= 2, "the second event holds them again"


def test_advice_that_has_lapsed_fades_also_beside_a_rule() -> None:
    late = {"old": {"when": "head_age_s > 0.05 and devices < 1500"}}
    doors = rule("doors", "late", {"send_every_s": {"door": 5}})
    chain = Chain({"events": {"late": late["old"]}, "rules": [doors]})
    chain.rounds(8, devices=2_000)
    chain.rounds(6, **{**FLOODED, "devices": 2_000})  # type: ignore[arg-type]
    held_s = chain.intervals[-1]
    lifetime_s = chain.loop.state.planner.in_force["send-rate"].lifetime_s
    chain.committed = chain.arrived
    chain.rounds(int(2 * lifetime_s) + 4, **CALM, mode=Mode(frozen=True))  # type: ignore[arg-type]
    chain.rounds(4, **CALM)  # type: ignore[arg-type]
    begun = [action.advice for action in chain.done if isinstance(action, Advise)][-1]
    assert begun.interval_of("door") == 5.0
    assert 0 < begun.interval_s < held_s, "nobody is let go at once"
    chain.rounds(200, **CALM)  # type: ignore[arg-type]
    assert chain.intervals[-1] == 0.0, "and nobody is held for ever"


def test_time_without_a_leader_is_not_the_plans_either() -> None:
    waiting = rule("slow", "many", {"send_every_s": {"*": 30}, "until": "devices > 5000", "within_s": 60})
    chain = Chain({"events": MANY, "rules": [waiting]})
    chain.rounds(10, devices=900)
    chain.at_s += 100.0
    chain.taken_over()
    chain.rounds(20, devices=900)
    assert [run.state for run in chain.loop.state.runs] == ["doing"]


def test_what_stays_is_gone_back_to_also_by_a_plan_that_began_before_it() -> None:
    events = {**MANY, "old": {"when": "head_age_s > 2"}}
    stays = {**rule("stays", "many", {"nodes": 3}), "stays": True}
    chain = Chain({"events": events, "rules": [stays, rule("more", "old", {"nodes": 4})]})
    chain.rounds(8, age_s=3.0)
    chain.nodes = 4
    chain.rounds(4, age_s=3.0)
    chain.rounds(2, age_s=3.0, devices=900)
    chain.nodes = 3
    chain.rounds(3, age_s=3.0, devices=900)
    chain.nodes = 4
    chain.rounds(3, age_s=3.0, devices=900)
    chain.rounds(6, devices=900)
    assert [action.nodes_wanted for action in chain.done if isinstance(action, ScaleNodes)][-1] == 3


def test_what_failed_to_stay_is_not_gone_back_to() -> None:
    events = {**MANY, "old": {"when": "head_age_s > 2"}}
    stays = {**rule("stays", "many", {"nodes": 3, "until": "devices > 5000", "within_s": 5}), "stays": True}
    chain = Chain({"events": events, "rules": [rule("more", "old", {"nodes": 4}), stays]})
    chain.rounds(8)
    chain.rounds(2, devices=900)
    chain.nodes = 3
    chain.rounds(2, devices=900, age_s=3.0)
    chain.nodes = 4
    chain.rounds(20, devices=900, age_s=3.0)
    chain.rounds(10, devices=900)
    assert [action.nodes_wanted for action in chain.done if isinstance(action, ScaleNodes)][-1] == 1


def test_an_earlier_rule_for_everybody_comes_before_a_later_one_for_a_class() -> None:
    first = rule("first", "many", {"send_every_s": {"*": 2}})
    second = rule("second", "many", {"send_every_s": {"meter": 20}})
    for several, meter_s in (([first, second], 2.0), ([second, first], 20.0)):
        chain = Chain({"events": MANY, "rules": several}, policy="none")
        chain.rounds(12, devices=900)
        advice = [action.advice for action in chain.done if isinstance(action, Advise)][-1]
        assert advice.interval_of("meter") == meter_s
