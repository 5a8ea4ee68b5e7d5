"""Decisions as the audit log keeps them."""

import msgspec
import pytest

from tidegate.model.actions import Action, Advise, MoveSlices, Route, ScaleNodes, kind_of
from tidegate.model.advice import Advice
from tidegate.model.decisions import Decision
from tidegate.model.intents import Reason
from tidegate.model.routes import Broker, Routes

REASON = Reason(measurements={"waiting": 70.0}, rule="R / N", rejected="leave them: data would age", because="so")


@pytest.mark.parametrize(
    ("action", "kind"),
    [
        (Advise(advice=Advice(interval_s=2.0, lifetime_s=9.0, classes={"alarm": 0.0})), "advise"),
        (ScaleNodes(nodes_wanted=3), "scale"),
        (MoveSlices(takers={2: "node-2"}), "move"),
        (Route(routes=Routes(brokers=(Broker(name="a", host="h", port=1),))), "route"),
    ],
)
def test_a_decision_is_read_as_it_was_written(action: Action, kind: str) -> None:
    decision = Decision(
        at_s=9.0,
        controller="c",
        plan="7",
        round="7",
        by="send-rate",
        phase="protect",
        sentence="Devices wait.",
        acted=True,
        action=action,
        reason=REASON,
    )
    written = msgspec.json.encode(decision)
    assert msgspec.json.decode(written, type=Decision) == decision
    assert kind_of(action) == kind == msgspec.json.decode(written)["action"]["kind"]
