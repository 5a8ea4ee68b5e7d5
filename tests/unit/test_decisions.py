"""Decisions as the audit log keeps them: also those that an earlier version wrote."""

import msgspec

from tidegate.model.decisions import Action, Decision, Reason

REASON = Reason(measurements={"waiting": 70.0}, rule="R / N", rejected="leave them: data would age")
ACTION = Action(kind="advise", arguments={"interval_s": 2.0}, reason=REASON)
DECISION = Decision(at_s=9.0, controller="c", phase="protect", sentence="Devices wait.", acted=True, action=ACTION)


def test_a_decision_is_read_as_it_was_written() -> None:
    assert msgspec.json.decode(msgspec.json.encode(DECISION), type=Decision) == DECISION


def test_a_decision_of_an_earlier_version_is_read_without_its_measurements() -> None:
    written = msgspec.json.encode(DECISION).replace(b'"measurements"', b'"readings"')
    found = msgspec.json.decode(written, type=Decision)
    assert (found.sentence, found.action.reason.rule) == (DECISION.sentence, REASON.rule)
    assert found.action.reason.measurements == {}
