"""Rules, events and what happened, in rows and sentences, pure."""

import time

from tidegate.model.notices import Notice
from tidegate.model.notices import sentence as told
from tidegate.model.view import RulesState, RuleState, View
from tidegate.web.components.table import Table

PLAN_WORDS = {"doing": "▲ under way", "in force": "● in force", "undoing": "▲ being taken back", "stuck": "■ stuck"}


def sentence(state: RulesState) -> str:
    """Which rules are followed, and what of them is under way."""
    if not state.name:
        return "No rules are applied: the policies alone decide. 'tidegate rules apply FILE' changes that."
    under_way = [rule.name for rule in state.rules if rule.plan in PLAN_WORDS]
    doing = f"{', '.join(under_way)} acts now" if under_way else "none acts now"
    return f"{len(state.rules)} rule(s) of {state.name} are followed: {doing}."


def rules(view: View) -> Table:
    return Table(
        columns=("Rule", "Event", "Plan", "Step", "Trouble"),
        numeric=frozenset({"Step"}),
        rows=tuple((rule.name, rule.on, _plan(rule), _step(rule), rule.trouble or "none") for rule in view.rules.rules),
        empty="No rules are applied.",
    )


def events(view: View) -> Table:
    return Table(
        columns=("Event", "Now"),
        rows=tuple((name, "▲ under way" if on else "● not under way") for name, on in view.rules.events.items()),
        empty="No event is looked for yet.",
    )


def notices(view: View) -> Table:
    """Newest first."""
    return Table(
        columns=("Time", "What happened"),
        rows=tuple((_clock(notice), told(notice)) for notice in reversed(view.rules.notices)),
        empty="Nothing has happened yet.",
    )


def _plan(rule: RuleState) -> str:
    return PLAN_WORDS.get(rule.plan, "▲ its event is under way" if rule.active else "waits for its event")


def _step(rule: RuleState) -> str:
    return f"{rule.step} of {rule.steps}" if rule.plan in PLAN_WORDS else f"0 of {rule.steps}"


def _clock(notice: Notice) -> str:
    return time.strftime("%H:%M:%S", time.localtime(notice.at_s))
