"""Rules in the loop: events of a file begin plans, policies follow other algorithms, and everybody is told."""

import msgspec

from tidegate.controller.settings import ControllerSettings
from tidegate.loop.machine import CHOSEN_MAX, ControlLoop
from tidegate.loop.rules import RuleSet
from tidegate.loop.state import LoopState
from tidegate.model.actions import Action, Advise, Reconfigure, ScaleNodes
from tidegate.model.decisions import Mode, Proposal
from tidegate.model.intents import Algorithm, Count
from tidegate.model.notices import ActionPlan, EventNotification, RangeChange
from tidegate.model.observations import BrokerState, NodeState, Observation

SETTINGS = ControllerSettings(period_s=1.0, window_s=2.0)


class Chain:
    """A calm chain of one node, whose brokers' connections are what a test says."""

    def __init__(self, rules: object) -> None:
        self.loop: ControlLoop = SETTINGS.control_loop(rules=msgspec.convert(rules, RuleSet))
        self.at_s = 0.0
        self.nodes = 1
        self.failing: dict[str, str] = {}  # trouble by kind of action
        self.done: list[Action] = []
        self.proposed: tuple[Proposal, ...] = ()

    def round(self, *connections: int, mode: Mode | None = None) -> list[Action]:
        """One round; what was carried out in it."""
        self.at_s += 1.0
        brokers = tuple(
            BrokerState(name=f"broker-{n}", address=f"127.0.0.1:{n + 1}", healthy=True, connections=count)
            for n, count in enumerate(connections)
        )
        nodes = tuple(NodeState(name=f"node-{n}", alive=True, slices=(n,), rows=1) for n in range(self.nodes))
        arrived = int(self.at_s * 10)
        seen = Observation(
            at_s=self.at_s, arrived=arrived, committed=arrived, head_age_s=0.0, devices=5, brokers=brokers, nodes=nodes
        )
        outcome = self.loop.tick(seen, mode or Mode())
        self.proposed = outcome.proposals
        acted = [one for one in outcome.proposals if one.acts]
        results = {one.plan: self.failing.get(one.action.__struct_config__.tag) for one in outcome.proposals}
        self.loop.told(results)
        carried = [one.action for one in acted if results[one.plan] is None and one.recorded]
        self.nodes = next((action.nodes_wanted for action in carried if isinstance(action, ScaleNodes)), self.nodes)
        self.done += [action for action in carried if isinstance(action, Advise | ScaleNodes | Reconfigure)]
        return carried

    def notices(self) -> list[object]:
        found = list(self.loop.state.notices)
        self.loop.noticed()
        return found


def rules(*steps: object, **more: object) -> dict[str, object]:
    rule = {"name": "cool", "on": "hot", "plan": list(steps), **more}
    hot = {"of": "brokers", "when": "connections > 100", "need": 2, "for_s": 3}
    return {"events": {"hot": hot}, "rules": [rule]}


def test_a_peak_that_is_shorter_than_the_duration_raises_nothing() -> None:
    chain = Chain(rules({"nodes": 2}))
    for load in (0, 0, 0, 200, 200, 200, 0, 200, 200, 0, 0):
        chain.round(load, load, 0)
    assert chain.done == []
    assert not any(isinstance(one, EventNotification) for one in chain.notices())


def test_two_of_three_brokers_make_the_event() -> None:
    chain = Chain(rules({"nodes": 2}))
    for _ in range(8):
        chain.round(200, 0, 0)
    assert chain.done == []
    for _ in range(4):
        chain.round(200, 200, 0)
    assert chain.done == [ScaleNodes(nodes_wanted=2)]
    begun = [one for one in chain.notices() if isinstance(one, EventNotification)]
    assert [(one.event, one.active) for one in begun] == [("hot", True)]


def test_a_rule_replaces_the_policy_while_its_event_lasts() -> None:
    chain = Chain(rules({"policy": "none"}))
    for _ in range(3):
        chain.round(0, 0)
    gotin = chain.loop.state.policies["send-rate"].state
    assert gotin
    for _ in range(5):
        chain.round(200, 200)
    assert chain.done == [Reconfigure(policies={"send-rate": Algorithm(name="none")})]
    assert chain.loop.state.policies["send-rate"].algorithm == "none"
    for _ in range(3):
        chain.round(0, 0)
    assert chain.done[1:] == [Reconfigure(policies={"send-rate": Algorithm()})]
    assert chain.loop.state.policies["send-rate"].algorithm == ""
    assert chain.loop.state.policies["send-rate"].state.keys() == gotin.keys()


def test_a_rule_changes_a_parameter_and_the_policy_keeps_what_it_knows() -> None:
    chain = Chain(rules({"options": {"k_protect": 0.7}}))
    for _ in range(3):
        chain.round(0, 0)
    chain.loop.state = msgspec.structs.replace(
        chain.loop.state,
        policies={
            **chain.loop.state.policies,
            "send-rate": msgspec.structs.replace(
                chain.loop.state.policies["send-rate"],
                state={**chain.loop.state.policies["send-rate"].state, "capacity_per_s": 123.0},
            ),
        },
    )
    for _ in range(6):
        chain.round(200, 200)
    assert chain.done == [Reconfigure(policies={"send-rate": Algorithm(options={"k_protect": 0.7})})]
    assert chain.loop.state.policies["send-rate"].state["capacity_per_s"] == 123.0


def test_a_plan_whose_second_step_fails_is_taken_back() -> None:
    chain = Chain(rules({"send_every_s": {"*": 5}}, {"nodes": 3}, {"policy": "none"}))
    chain.failing["scale"] = "no node can be started"
    for _ in range(24):
        chain.round(200, 200)
    advised = [action.advice.interval_s for action in chain.done if isinstance(action, Advise)]
    assert advised == [5.0, 0.0]
    assert not any(isinstance(action, Reconfigure) for action in chain.done), "the third step was not reached"
    told = [one for one in chain.notices() if isinstance(one, ActionPlan)]
    assert [(one.state, one.step) for one in told] == [
        ("doing", 1),
        ("doing", 2),
        ("doing", 2),
        ("undoing", 2),
        ("undoing", 1),
        ("undone", 1),
    ]
    assert told[-1].trouble == "step 2 of 3 failed: no node can be started"


def test_shadow_mode_reconfigures_nothing() -> None:
    chain = Chain(rules({"policy": "none"}))
    for _ in range(8):
        chain.round(200, 200, mode=Mode(send_rate="shadow"))
    assert chain.done == []
    assert chain.loop.state.policies["send-rate"].algorithm == ""


def test_plans_of_rules_that_are_gone_are_taken_back() -> None:
    chain = Chain(rules({"send_every_s": {"*": 5}}))
    for _ in range(6):
        chain.round(200, 200)
    chain.loop.follow(RuleSet())
    for _ in range(3):
        chain.round(200, 200)
    advised = [action.advice.interval_s for action in chain.done if isinstance(action, Advise)]
    assert advised == [5.0, 0.0]


def test_a_property_that_leaves_its_range_is_reported() -> None:
    chain = Chain({"ranges": {"brokers.connections": [100, 1000]}})
    for load in (0, 0, 0, 500, 500, 5000, 0):
        chain.round(load)
    told = [one for one in chain.notices() if isinstance(one, RangeChange)]
    assert [(one.source, one.value, one.was, one.now) for one in told] == [
        ("broker/broker-0", 500.0, 0, 1),
        ("broker/broker-0", 5000.0, 1, 2),
        ("broker/broker-0", 0.0, 2, 0),
    ]


def test_whoever_takes_over_between_two_steps_goes_on_and_nothing_is_done_twice() -> None:
    """The leader is killed after every round, before and after it heard what came of its actions."""
    steps = ({"send_every_s": {"*": 5}}, {"nodes": 3}, {"policy": "none"})

    def played(killed: bool) -> list[Action]:
        chain = Chain(rules(*steps))
        for second in range(30):
            chain.round(*((200, 200) if second < 15 else (0, 0)))
            if killed:
                heir = SETTINGS.control_loop(rules=msgspec.convert(rules(*steps), RuleSet))
                heir._window = chain.loop._window  # a follower has measured all the time
                heir.resume(msgspec.json.decode(msgspec.json.encode(chain.loop.state), type=LoopState))
                chain.loop = heir
        return chain.done

    whole = played(killed=False)
    assert [type(action) for action in whole] == [Advise, ScaleNodes, Reconfigure, Reconfigure, ScaleNodes, Advise]
    assert played(killed=True) == whole


def test_what_was_written_ahead_is_finished_by_the_next_leader_under_the_same_number() -> None:
    chain = Chain(rules({"nodes": 3}))
    for _ in range(4):
        chain.round(200, 200)
    chain.at_s += 1.0
    node = NodeState(name="node-0", alive=True, slices=(0,), rows=1)
    brokers = tuple(
        BrokerState(name=f"broker-{n}", address=f"127.0.0.1:{n + 1}", healthy=True, connections=200) for n in range(2)
    )
    arrived = int(chain.at_s * 10)
    seen = Observation(
        at_s=chain.at_s, arrived=arrived, committed=arrived, head_age_s=0.0, devices=5, brokers=brokers, nodes=(node,)
    )
    outcome = chain.loop.tick(seen, Mode())
    pending = chain.loop.state.pending
    assert pending == outcome.proposals
    heir = SETTINGS.control_loop()
    heir.resume(msgspec.json.decode(msgspec.json.encode(chain.loop.state), type=LoopState))
    assert heir.state.pending == pending


def test_a_stuck_plan_stays_until_somebody_applies_rules_anew() -> None:
    said = msgspec.convert(rules({"nodes": 2}), RuleSet)
    chain = Chain(rules({"nodes": 2}))
    chain.loop.follow(said, applied_at_s=1.0)
    for _ in range(8):
        chain.round(200, 200, 0)
    chain.nodes = 2
    chain.failing = {"scale": "node-2 does not stop"}
    for _ in range(20):
        chain.round(0, 0, 0)
    assert [run.state for run in chain.loop.state.runs] == ["stuck"]
    assert "its way back failed: node-2 does not stop" in chain.loop.state.runs[0].trouble
    successor = Chain(rules({"nodes": 2}))
    successor.loop.follow(said, applied_at_s=1.0)
    successor.loop.resume(chain.loop.state)
    successor.at_s, successor.nodes = chain.at_s, 2
    for _ in range(5):
        successor.round(0, 0, 0)
    assert [run.state for run in successor.loop.state.runs] == ["stuck"], "the next leader shows it as well"
    successor.loop.follow(said, applied_at_s=2.0)
    successor.round(0, 0, 0)
    assert successor.loop.state.runs == ()


def test_a_rule_on_one_class_is_taken_back() -> None:
    chain = Chain(rules({"send_every_s": {"telemetry": 4}}))
    for _ in range(8):
        chain.round(200, 200, 0)
    assert [action.advice.classes for action in chain.done if isinstance(action, Advise)] == [{"telemetry": 4.0}]
    for _ in range(20):
        chain.round(0, 0, 0)
    assert chain.loop.state.runs == ()
    last = [action for action in chain.done if isinstance(action, Advise)][-1]
    assert last.advice.interval_of("telemetry") == 0.0


def test_an_event_that_begins_again_while_its_plan_is_taken_back_has_its_plan_again() -> None:
    chain = Chain(rules({"nodes": 2}))
    for _ in range(8):
        chain.round(200, 200, 0)
    chain.nodes, chain.failing = 2, {"scale": "not now"}
    for _ in range(2):
        chain.round(0, 0, 0)
    chain.failing, chain.nodes = {}, 1
    for _ in range(30):
        chain.round(200, 200, 0)
    assert [run.state for run in chain.loop.state.runs] == ["in force"]
    assert chain.loop.state.runs[0].plan.steps[0].wanted == {"nodes": Count(nodes=2)}


def test_rules_that_are_applied_while_their_event_lasts_begin_at_once() -> None:
    chain = Chain(rules({"nodes": 2}))
    for _ in range(8):
        chain.round(200, 200, 0)
    chain.nodes = 2
    chain.loop.follow(msgspec.convert(rules({"nodes": 3}), RuleSet), applied_at_s=5.0)
    for _ in range(8):
        chain.round(200, 200, 0)
    assert [action.nodes_wanted for action in chain.done if isinstance(action, ScaleNodes)][-1] == 3


def test_a_step_that_something_stands_in_the_way_of_is_not_done() -> None:
    """The second of two rules has no say in what the first wants: it goes back, and says why."""
    both = rules({"nodes": 2})
    other = {"name": "second", "on": "hot", "plan": [{"nodes": 3, "within_s": 5}, {"send_every_s": {"*": 9}}]}
    both["rules"] = [*both["rules"], other]  # type: ignore[misc]
    chain = Chain(both)
    for _ in range(30):
        chain.round(200, 200, 0)
    assert ScaleNodes(nodes_wanted=3) not in chain.done
    assert not any(isinstance(action, Advise) for action in chain.done), "its second step was never due"
    plans = [one for one in chain.notices() if isinstance(one, ActionPlan) and one.rule == "second"]
    assert "comes before it" in plans[-1].trouble


def test_in_shadow_a_plan_waits_for_the_operator() -> None:
    chain = Chain(rules({"nodes": 2, "within_s": 5}))
    for _ in range(40):
        chain.round(200, 200, 0, mode=Mode(nodes="shadow"))
    assert chain.done == []
    assert [run.state for run in chain.loop.state.runs] == ["doing"]
    for _ in range(3):
        chain.round(200, 200, 0)
    assert chain.done == [ScaleNodes(nodes_wanted=2)]


def test_a_reason_names_what_the_event_went_by_and_why_a_plan_is_taken_back() -> None:
    chain = Chain(rules({"nodes": 2}))
    reasons = []
    for load in (200,) * 8 + (0,) * 12:
        chain.round(load, load, 0)
        reasons += [one.reason for one in chain.proposed if one.recorded and one.by == "rule cool"]
    assert reasons[0].measurements["broker/broker-0.connections"] == 200.0
    assert "has begun" in reasons[0].because
    assert "the event hot is over" in reasons[-1].because


def test_an_algorithm_that_does_not_go_with_the_settings_any_more_is_said_and_stops_nothing() -> None:
    chain = Chain(rules({"options": {"k_protect": 0.5}}, stays=True))
    for _ in range(10):
        chain.round(200, 200, 0)
    other = ControllerSettings(period_s=1.0, window_s=2.0, policy="adaptive").control_loop()
    other.resume(chain.loop.state)
    chain.loop = other
    for _ in range(5):
        chain.round(0, 0, 0)
    assert "has no option 'k_protect'" in other.problems["send-rate"]


def test_policies_that_rules_wanted_are_not_kept_for_ever() -> None:
    chain = Chain(rules({"options": {"k_protect": 0.5}}))
    for number in range(3 * CHOSEN_MAX):
        wanted = Algorithm(options={"k_protect": 0.5 + number / 1000})
        chain.loop._following(chain.loop._policies[2], wanted)
    assert len(chain.loop._chosen) == CHOSEN_MAX
