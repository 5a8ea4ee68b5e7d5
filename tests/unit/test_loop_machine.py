"""The loop as a whole: what it proposes in every mode, when it renews, and what the next leader takes up."""

import msgspec
import pytest

from tidegate.control.policy import Seen, SendRatePolicy, Verdict
from tidegate.control.send_rate.gotin import Gotin, GotinSettings
from tidegate.control.send_rate.none import NoState
from tidegate.loop.events import OVERLOAD, Event, EventRule
from tidegate.loop.families import paces
from tidegate.loop.machine import ControlLoop
from tidegate.loop.policies.nodes import NodeCount
from tidegate.loop.policies.routes import FollowHealth
from tidegate.loop.policies.send_rate import SendRate
from tidegate.loop.policies.slices import SpreadSlices
from tidegate.loop.state import LoopState, PolicyMemory
from tidegate.model.actions import Advise, MoveSlices, Route, ScaleNodes, kind_of
from tidegate.model.advice import Advice
from tidegate.model.decisions import Mode, Proposal
from tidegate.model.observations import BrokerState, NodeState, Observation

ACTING, FROZEN = Mode(), Mode(frozen=True)
SHADOW = Mode(send_rate="shadow", nodes="shadow")
OFF = Mode(send_rate="off", nodes="off")
LIFETIME_S = 9.0


class Chain:
    """100 devices; the tables take 50 messages a second; ``old`` says whether data is old."""

    def __init__(self, loop: ControlLoop | None = None) -> None:
        self.loop = loop or new_loop()
        self.at_s = 0.0
        self.brokers: tuple[BrokerState, ...] = ()
        self.devices = 100

    def round(self, *, old: bool, mode: Mode = ACTING, passed_s: float = 1.0) -> tuple[Proposal, ...]:
        self.at_s += passed_s
        self.outcome = self.loop.tick(self.observation(old=old), mode)
        self.loop.carried_out(self.outcome.proposals)
        return self.outcome.proposals

    def observation(self, *, old: bool) -> Observation:
        return Observation(
            at_s=self.at_s,
            arrived=round(self.at_s * 100) + 1_000,
            committed=round(self.at_s * 50),
            head_age_s=3.0 if old else 0.2,
            devices=self.devices,
            brokers=self.brokers,
        )

    def rounds(self, count: int, *, old: bool, mode: Mode = ACTING) -> list[Proposal]:
        return [proposal for _ in range(count) for proposal in self.round(old=old, mode=mode)]


def new_loop() -> ControlLoop:
    policy = Gotin(GotinSettings(default_rate_per_s=2.0, k_protect=0.5, k_recover=2.0, iteration_s=1.0))
    return loop_of(policy, window_s=3.0)


def loop_of(policy: SendRatePolicy, *, window_s: float, for_s: float = 0.0) -> ControlLoop:
    event = Event(EventRule(when="head_age_s > 1", for_s=for_s))
    return ControlLoop(
        (FollowHealth(), SpreadSlices(), SendRate(policy, LIFETIME_S), NodeCount()),
        {OVERLOAD: event},
        window_s=window_s,
    )


def warm(chain: Chain) -> Chain:
    assert chain.rounds(4, old=False) == []
    return chain


def advice(proposal: Proposal) -> Advice:
    action = proposal.action
    assert isinstance(action, Advise)
    return action.advice


def intervals(proposals: list[Proposal] | tuple[Proposal, ...]) -> list[float]:
    return [advice(proposal).interval_s for proposal in proposals]


def sentence(proposal: Proposal) -> str:
    return proposal.sentence


def test_an_overload_is_one_decision_with_its_reason() -> None:
    chain = warm(Chain())
    (proposal,) = chain.round(old=True)
    assert proposal.action == Advise(advice=Advice(interval_s=4.0, lifetime_s=12.0))
    assert proposal.reason.measurements["head_age_s"] == 3.0
    assert proposal.reason.measurements["departure_per_s"] == pytest.approx(50)
    assert "min(50 msg/s / 100, 2) * 0.5" in proposal.reason.rule
    assert proposal.reason.rejected.startswith("leave devices at 2 msg/s")
    assert (proposal.acts, proposal.recorded) == (True, True)
    assert (proposal.by, proposal.phase, proposal.events) == ("send-rate", "protect", ("overload",))
    assert proposal.sentence == (
        "100 devices are asked to send every 4 s because data is 3 s old and Spark takes 50 msg/s."
    )
    assert (chain.outcome.sample.interval_s, chain.outcome.sample.phase) == (4.0, "protect")


def test_nothing_is_decided_before_the_first_window_is_full() -> None:
    chain = Chain()
    assert [len(chain.round(old=True)) for _ in range(4)] == [0, 0, 0, 1]


def test_unchanged_advice_is_renewed_at_a_third_of_its_lifetime_and_not_written_down() -> None:
    chain = warm(Chain())
    chain.round(old=True)
    found = chain.rounds(12, old=True)
    assert [proposal.recorded for proposal in found] == [False] * 3
    assert intervals(found) == [4.0] * 3


def test_a_change_below_two_percent_is_no_decision() -> None:
    chain = warm(Chain())
    chain.round(old=True)
    chain.devices = 101
    assert chain.round(old=True) == ()
    chain.devices = 105
    (changed,) = chain.round(old=True)
    assert changed.recorded
    assert intervals([changed]) == [pytest.approx(4.2)]


def test_recovery_ends_with_one_withdrawal_and_then_silence() -> None:
    chain = warm(Chain())
    chain.round(old=True)
    found = chain.rounds(40, old=False)
    decisions = [proposal for proposal in found if proposal.recorded]
    assert intervals(decisions) == [2.0, 1.0, 0.0]
    assert [proposal.phase for proposal in decisions] == ["recover", "recover", "idle"]
    assert sentence(decisions[-1]).startswith("Devices return to their default because")
    renewals = found[found.index(decisions[-1]) + 1 :]
    assert intervals(renewals) == [0.0, 0.0]
    assert chain.rounds(30, old=False) == []


def test_shadow_mode_decides_and_nothing_is_in_force() -> None:
    chain = warm(Chain())
    found = [*chain.round(old=True, mode=SHADOW), *chain.rounds(10, old=True, mode=SHADOW)]
    assert [(proposal.acts, proposal.recorded) for proposal in found] == [(False, True)]
    assert chain.outcome.sample.interval_s == 0
    assert chain.outcome.sample.phase == "protect"
    (now_acting,) = chain.round(old=True)
    assert (now_acting.acts, now_acting.recorded) == (True, True)


def test_off_withdraws_once_and_forgets() -> None:
    chain = warm(Chain())
    chain.round(old=True)
    (withdrawal,) = chain.round(old=True, mode=OFF)
    assert intervals([withdrawal]) == [0.0]
    assert (withdrawal.acts, withdrawal.recorded) == (True, True)
    assert sentence(withdrawal) == "Devices return to their default because send-rate protection is off."
    assert not any(proposal.recorded for proposal in chain.rounds(20, old=True, mode=OFF))


def test_off_without_advice_in_force_does_nothing() -> None:
    chain = warm(Chain())
    assert chain.rounds(5, old=True, mode=OFF) == []


def test_frozen_executes_nothing_and_advice_lapses() -> None:
    chain = warm(Chain())
    chain.round(old=True)
    assert chain.rounds(11, old=True, mode=FROZEN) == []
    assert chain.outcome.sample.interval_s == 4.0
    chain.round(old=True, mode=FROZEN)
    assert chain.outcome.sample.interval_s == 0.0
    (renewal,) = chain.round(old=True)
    assert renewal.acts


def test_a_stale_observation_decides_nothing() -> None:
    chain = warm(Chain())
    chain.round(old=True)
    stale = chain.observation(old=True)
    assert all(chain.loop.tick(stale, ACTING).proposals == () for _ in range(20))


def test_the_next_leader_continues_from_the_stored_state() -> None:
    chain = warm(Chain())
    chain.round(old=True)
    stored = msgspec.json.encode(chain.loop.state)
    heir = Chain()
    heir.at_s = chain.at_s - 5
    for _ in range(5):
        heir.at_s += 1
        heir.loop.resume(msgspec.json.decode(stored, type=LoopState))
        sample = heir.loop.watch(heir.observation(old=True))
    assert (sample.phase, sample.interval_s, sample.capacity_per_s) == ("protect", 4.0, pytest.approx(50))
    assert intervals(heir.rounds(3, old=False)) == [2.0, 1.0]


def test_a_state_of_another_policy_begins_anew() -> None:
    chain = Chain()
    chain.loop.resume(LoopState(policies={"send-rate": PolicyMemory(state={"phase": "dreaming"})}))
    assert warm(chain).loop.state.policies["send-rate"].finding.phase == "idle"


def broker(name: str, *, healthy: bool = True) -> BrokerState:
    return BrokerState(name=name, address="127.0.0.1:1883", healthy=healthy)


def healthy(proposal: Proposal) -> list[bool]:
    action = proposal.action
    assert isinstance(action, Route)
    return [broker.healthy for broker in action.routes.brokers]


def test_routes_follow_the_brokers_health() -> None:
    chain = Chain()
    chain.brokers = (broker("a"), broker("b"))
    (first,) = chain.round(old=False)
    assert sentence(first) == "New clients go to a, b because these brokers answer."
    assert chain.rounds(3, old=False) == []
    chain.brokers = (broker("a"), broker("b", healthy=False))
    (ill,) = chain.round(old=False, mode=OFF)
    assert sentence(ill) == "New clients go to a because b is unhealthy."
    assert healthy(ill) == [True, False]
    chain.brokers = (broker("a", healthy=False), broker("b", healthy=False))
    assert chain.round(old=False) == ()
    chain.brokers = (broker("a"), broker("b"))
    assert chain.round(old=False, mode=FROZEN) == ()
    (well,) = chain.round(old=False)
    assert sentence(well) == "New clients go to a, b because b is healthy."


def test_leases_run_from_the_decision_and_not_from_the_measurement() -> None:
    """Views come 20 s late, which is longer than advice lives: it is in force all the same, and renewed in time."""
    chain, late_s = Chain(), 20.0
    said = []
    for second in range(1, 31):
        chain.at_s = float(second)
        outcome = chain.loop.tick(chain.observation(old=second > 4), ACTING, now_s=second + late_s)
        chain.loop.carried_out(outcome.proposals)
        said += [(second, proposal.recorded) for proposal in outcome.proposals]
    assert said == [(5, True), *((second, False) for second in range(9, 31, 4))]
    given = chain.loop.state.planner.in_force["send-rate"]
    assert (given.decided_at_s, given.told_at_s) == (5 + late_s, 29 + late_s)
    assert paces(given.kept_to(29 + late_s + 11.9))["*"].interval_s == 4.0
    assert given.kept_to(29 + late_s + 12.0) == {}


def test_an_overload_begins_when_it_was_measured_and_is_decided_now() -> None:
    """Two seconds of overload are two seconds between views, whenever these arrive."""
    watcher = Watcher()
    chain = Chain(loop_of(watcher, window_s=1.0, for_s=2.0))
    for second, now_s in ((1, 50.0), (2, 50.1), (3, 50.2), (4, 50.3), (5, 90.0)):
        chain.at_s = float(second)
        chain.loop.tick(chain.observation(old=second > 2), ACTING, now_s=now_s)
    assert [(seen.at_s, seen.measured_at_s, seen.overload) for seen in watcher.saw] == [
        (50.1, 2.0, False),
        (50.2, 3.0, False),
        (50.3, 4.0, False),
        (90.0, 5.0, True),
    ]


class Watcher:
    """Wants ``nodes_wanted`` processing nodes, holds nobody, and keeps what it saw."""

    state_type = NoState

    def __init__(self, nodes_wanted: int | None = None) -> None:
        self.nodes_wanted = nodes_wanted
        self.saw: list[Seen] = []

    def initial(self) -> NoState:
        return NoState()

    def step(self, state: NoState, seen: Seen) -> tuple[NoState, Verdict]:
        self.saw.append(seen)
        said = {"rule": "so many are wanted", "rejected": "another number", "capacity_per_s": None}
        return state, Verdict(phase="idle", rate_per_device=None, nodes_wanted=self.nodes_wanted, **said)


class Nodes:
    """A loop that wants processing nodes, and as many as an operator left it with."""

    def __init__(self, wanted: int | None, *running: tuple[int, ...]) -> None:
        self.policy = Watcher(wanted)
        self.loop = loop_of(self.policy, window_s=1.0)
        self.running = running
        self.starting = 0
        self.at_s = 1_000.0
        self.rounds(2)

    def rounds(self, count: int, mode: Mode = ACTING) -> list[tuple[float, Proposal]]:
        """What was proposed, with its second."""
        found = []
        for _ in range(count):
            self.at_s += 1.0
            outcome = self.loop.tick(self._observation(), mode)
            self.loop.carried_out(outcome.proposals)
            found += [(self.at_s, proposal) for proposal in outcome.proposals]
        self.sample = outcome.sample
        return found

    def _observation(self) -> Observation:
        nodes = tuple(
            NodeState(name=f"node-{number}", alive=True, slices=slices, rows=0)
            for number, slices in enumerate(self.running, start=1)
        )
        return Observation(
            at_s=self.at_s,
            arrived=0,
            committed=0,
            head_age_s=0.0,
            devices=0,
            nodes=nodes,
            starting=self.starting,
        )


def kinds(found: list[tuple[float, Proposal]]) -> list[str]:
    return [kind_of(proposal.action) for _, proposal in found]


def test_the_number_that_runs_already_is_not_asked_for() -> None:
    nodes = Nodes(2, (0, 1), (2, 3))
    assert nodes.rounds(60) == []
    assert (nodes.sample.nodes_working, nodes.sample.nodes_wanted) == (2, 2)


def test_a_node_that_has_gone_does_not_count_as_working() -> None:
    gone = NodeState(name="node-2", alive=False, slices=(), rows=9)
    seen = Observation(at_s=1.0, arrived=0, committed=0, head_age_s=0.0, devices=0, nodes=(gone,))
    assert Nodes(2, (0, 1)).loop.watch(seen).nodes_working == 0


def test_another_number_of_nodes_is_one_decision() -> None:
    nodes = Nodes(1, (0, 1, 2, 3))
    nodes.policy.nodes_wanted = 2
    ((_, proposal),) = nodes.rounds(1)
    assert proposal.action == ScaleNodes(nodes_wanted=2)
    assert (proposal.acts, proposal.recorded) == (True, True)
    nodes.starting = 1
    assert nodes.rounds(60) == []
    assert (nodes.sample.nodes_working, nodes.sample.nodes_wanted) == (1, 2)


def test_a_node_that_works_gets_slices_and_one_that_shall_go_gives_them_back() -> None:
    nodes = Nodes(2, (0, 1, 2, 3))
    nodes.running = ((0, 1, 2, 3), ())
    ((_, given),) = nodes.rounds(1)
    assert given.action == MoveSlices(takers={2: "node-2", 3: "node-2"})
    nodes.running = ((0, 1), (2, 3))
    assert nodes.rounds(60) == []
    nodes.policy.nodes_wanted = 1
    found = nodes.rounds(2)
    assert kinds(found) == ["scale", "move"]
    assert found[1][1].action == MoveSlices(takers={2: "node-1", 3: "node-1"})


def test_nodes_that_were_asked_for_in_vain_are_asked_for_again() -> None:
    nodes = Nodes(1, (0, 1, 2, 3))
    nodes.policy.nodes_wanted = 3
    found = nodes.rounds(25)
    assert kinds(found) == ["scale"] * 3
    assert [at_s - found[0][0] for at_s, _ in found] == [0.0, 10.0, 20.0]


def test_in_shadow_mode_a_number_of_nodes_is_only_said() -> None:
    nodes = Nodes(1, (0, 1, 2, 3))
    nodes.policy.nodes_wanted = 2
    found = nodes.rounds(5, SHADOW)
    assert [(proposal.acts, proposal.recorded) for _, proposal in found] == [(False, True)]


def test_in_shadow_mode_no_slice_leaves_a_node_that_goes_on_working() -> None:
    nodes = Nodes(2, (0, 1), (2, 3))
    nodes.policy.nodes_wanted = 1
    assert [(kinds([one]), one[1].acts) for one in nodes.rounds(80, SHADOW)] == [(["scale"], False)]


def test_what_was_wanted_in_shadow_mode_is_carried_out_when_it_may_be() -> None:
    nodes = Nodes(2, (0, 1), (2, 3))
    nodes.policy.nodes_wanted = 1
    nodes.rounds(5, SHADOW)
    found = nodes.rounds(30)
    assert ("scale", True) in [(kind_of(proposal.action), proposal.acts) for _, proposal in found]


@pytest.mark.parametrize("mode", [OFF, FROZEN])
def test_where_the_operator_decides_no_node_is_asked_for(mode: Mode) -> None:
    nodes = Nodes(1, (0, 1, 2, 3))
    nodes.policy.nodes_wanted = 2
    assert nodes.rounds(30, mode) == []


def test_the_next_leader_knows_how_many_nodes_were_asked_for() -> None:
    nodes = Nodes(1, (0, 1, 2, 3))
    nodes.policy.nodes_wanted = 2
    nodes.rounds(1)
    heir = Nodes(2, (0, 1, 2, 3))
    heir.starting = 1
    heir.loop.resume(msgspec.json.decode(msgspec.json.encode(nodes.loop.state), type=LoopState))
    assert heir.rounds(30) == []
