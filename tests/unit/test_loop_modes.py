"""What the operator allows: by family, for a part of them, and for what was decided before he changed his mind."""

import pytest

from tidegate.controller.acting import PENDING_S_MAX, refusals
from tidegate.controller.settings import ControllerSettings
from tidegate.loop.machine import ControlLoop, Outcome
from tidegate.model.actions import Action, Advise, Route, ScaleNodes
from tidegate.model.advice import Advice
from tidegate.model.decisions import Mode, Proposal
from tidegate.model.intents import Reason
from tidegate.model.observations import BrokerState, NodeState, Observation
from tidegate.model.routes import Broker, Routes

NAMES = tuple(f"broker-{number}" for number in range(1, 6))
FIVE = Routes(brokers=tuple(Broker(name=name, host="host", port=1883) for name in NAMES))


class Flooded:
    """A chain with one node at its limit for as long as a test says; its devices follow at once."""

    def __init__(self, policy: str = "gotin") -> None:
        overload = "nodes_at_limit >= 1 and head_age_s > 1"
        self._settings = ControllerSettings(policy=policy, overload=overload)  # type: ignore[arg-type]
        self.loop: ControlLoop = self._settings.control_loop()
        self.at_s, self.arrived, self.committed, self.busy_s = 1_000.0, 0, 0, 0.0
        self.told: list[Advice] = []

    def round(self, *, flood: bool, mode: Mode | None = None, away_s: float = 0.0) -> Outcome:
        self.at_s += 1.0 + away_s
        self.arrived += 200
        self.committed = self.committed + 100 if flood else self.arrived
        self.busy_s += flood
        node = NodeState(
            name="node-1",
            alive=True,
            slices=(0,),
            rows=self.committed,
            limit_rows=100 * self.busy_s,
            limit_s=self.busy_s,
        )
        seen = Observation(
            at_s=self.at_s,
            arrived=self.arrived,
            committed=self.committed,
            head_age_s=5.0 if flood else 0.1,
            devices=100,
            nodes=(node,),
        )
        outcome = self.loop.tick(seen, mode or Mode())
        self.loop.carried_out(outcome.proposals)
        self.told += [one.action.advice for one in outcome.proposals if isinstance(one.action, Advise) and one.acts]
        return outcome


@pytest.mark.parametrize("unhealthy", [(), ("broker-1",), ("broker-2", "broker-3")])
@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.9])
def test_brokers_outside_of_the_cohort_stay_as_they_are(share: float, unhealthy: tuple[str, ...]) -> None:
    loop = ControllerSettings().control_loop()
    brokers = tuple(BrokerState(name=name, address="host:1883", healthy=name not in unhealthy) for name in NAMES)
    for second in range(5):
        seen = Observation(
            at_s=1_000.0 + second, arrived=0, committed=0, head_age_s=0, devices=0, brokers=brokers, routes=FIVE
        )
        outcome = loop.tick(seen, Mode(routes="cohort", cohort_share=share))
        for action in (one.action for one in outcome.proposals if isinstance(one.action, Route)):
            assert {broker.name for broker in action.routes.brokers} == set(NAMES)
            assert {broker.name for broker in action.routes.brokers if not broker.healthy} <= set(unhealthy)
        loop.carried_out(outcome.proposals)


def test_a_cohort_that_is_switched_off_is_let_go() -> None:
    chain = Flooded()
    for _ in range(40):
        chain.round(flood=True, mode=Mode(send_rate="cohort"))
    assert chain.told[-1].interval_s > 0
    assert chain.told[-1].share == pytest.approx(0.1)
    chain.round(flood=True, mode=Mode(send_rate="off"))
    assert (chain.told[-1].interval_s, chain.told[-1].share) == (0.0, 1.0)


@pytest.mark.parametrize("policy", ["gotin", "adaptive", "credits", "spark-pid"])
def test_whoever_comes_back_into_a_calm_chain_holds_nobody(policy: str) -> None:
    chain = Flooded(policy)
    for _ in range(12):
        chain.round(flood=True)
    assert any(advice.interval_s for advice in chain.told), "they were held"
    chain.told.clear()
    chain.round(flood=False, away_s=3 * 3_600.0)
    for _ in range(30):
        chain.round(flood=False)
    assert not any(advice.interval_s for advice in chain.told)


REASON = Reason(rule="a test", rejected="nothing", because="so")


def proposed(action: Action, at_s: float = 1_000.0) -> Proposal:
    return Proposal(at_s=at_s, plan="7", round="7", by="a test", action=action, reason=REASON, sentence="so")


ADVISE = Advise(advice=Advice(interval_s=3.0, lifetime_s=10.0))


@pytest.mark.parametrize(
    ("action", "mode", "waited_s", "because"),
    [
        pytest.param(ADVISE, Mode(), 1.0, "", id="still right"),
        pytest.param(ADVISE, Mode(frozen=True), 1.0, "became frozen", id="frozen"),
        pytest.param(ADVISE, Mode(send_rate="shadow"), 1.0, "became shadow", id="shadow"),
        pytest.param(ADVISE, Mode(send_rate="off"), 1.0, "became off", id="off"),
        pytest.param(ADVISE, Mode(nodes="off"), 1.0, "", id="another family is off"),
        pytest.param(ScaleNodes(nodes_wanted=2), Mode(nodes="off"), 1.0, "became off", id="nodes are off"),
        pytest.param(
            ADVISE, Mode(), PENDING_S_MAX + 1, "31 s ago, and nobody knows whether it was carried out", id="too old"
        ),
    ],
)
def test_what_was_decided_is_not_carried_out_any_more(
    action: Action, mode: Mode, waited_s: float, because: str
) -> None:
    found = refusals([proposed(action)], mode, 1_000.0 + waited_s)
    assert (because in found["7"]) if because else not found
