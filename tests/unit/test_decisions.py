"""Decisions as the audit log keeps them."""

import msgspec
import pytest

from tidegate.model.actions import Action, Advise, MoveSlices, Route, ScaleNodes, kind_of
from tidegate.model.advice import Advice
from tidegate.model.decisions import Decision, Mode
from tidegate.model.errors import UserError
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


@pytest.mark.parametrize(
    ("acted", "trouble", "words"),
    [
        (True, "", ""),
        (False, "", "not carried out"),
        (False, "nobody knows whether it was.", "not done by c: nobody knows whether it was."),
    ],
)
def test_what_was_not_done_is_said_as_far_as_it_is_known(acted: bool, trouble: str, words: str) -> None:
    decision = Decision(
        at_s=9.0,
        controller="c",
        plan="7",
        round="7-9000",
        by="send-rate",
        phase="",
        sentence="So.",
        acted=acted,
        trouble=trouble,
        action=ScaleNodes(nodes_wanted=3),
        reason=REASON,
    )
    assert decision.not_done == words


def test_a_mode_that_there_is_not_cannot_be_read() -> None:
    with pytest.raises(msgspec.ValidationError, match="Shadow"):
        msgspec.json.decode(b'{"send_rate": "Shadow"}', type=Mode)


def test_only_what_is_changed_of_a_mode_is_changed() -> None:
    frozen = Mode(nodes="shadow", frozen=True)
    assert frozen.with_changes({"send_rate": "off"}) == Mode(nodes="shadow", send_rate="off", frozen=True)
    assert frozen.with_changes({"frozen": False}) == Mode(nodes="shadow")
    with pytest.raises(UserError, match="There is no mode 'loud': choose one of acting, cohort, shadow, off"):
        frozen.with_changes({"send_rate": "loud"})
    with pytest.raises(UserError, match="cohort_share"):
        frozen.with_changes({"cohort_share": 0.0})
