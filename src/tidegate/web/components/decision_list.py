"""Decisions with their reasons, newest first. What an operator has opened stays open when another decision arrives."""

from collections.abc import Sequence
from html import escape

import msgspec
from nicegui import ui

from tidegate.model.actions import kind_of
from tidegate.model.decisions import Decision
from tidegate.web.values.words import phase_word


class DecisionList:
    def __init__(self, length_max: int) -> None:
        self._length_max = length_max
        self._empty = ui.label("No decision yet.").classes("quiet")
        self._list = ui.element("div").classes("decisions")
        self._shown: list[tuple[tuple[float, str], ui.html]] = []  # oldest first

    def show(self, decisions: Sequence[Decision]) -> None:
        wanted = decisions[-self._length_max :]
        keys = {_key(decision) for decision in wanted}
        for key, element in self._shown:
            if key not in keys:
                element.delete()
        self._shown = [(key, element) for key, element in self._shown if key in keys]
        present = {key for key, _ in self._shown}
        for decision in wanted:
            if _key(decision) not in present:
                with self._list:
                    element = ui.html(decision_html(decision), tag="details", sanitize=False)
                element.move(target_index=0)
                self._shown.append((_key(decision), element))
        self._empty.set_visibility(not wanted)


def decision_html(decision: Decision) -> str:
    """One line; behind it the measurements, the rule and what was not done. The browser fills in its time."""
    word = (phase_word(decision.phase) or decision.by) + ("" if decision.acted else ", not acted")
    reason = decision.reason
    measurements = ", ".join(f"{name} = {value:,.4g}" for name, value in reason.measurements.items())
    arguments = ", ".join(f"{name} = {_short(value)}" for name, value in _arguments(decision).items())
    parts = (
        ("Measurements", measurements),
        ("Rule", reason.rule),
        ("Not taken", reason.rejected),
        ("Expected", decision.expects.words if decision.expects is not None else "nothing that can be measured"),
        ("Action", f"{kind_of(decision.action)}: {arguments}"),
        ("By", decision.controller),
    )
    behind = "".join(f"<dt>{name}</dt><dd>{escape(text)}</dd>" for name, text in parts)
    return (
        f"<summary><time class='quiet' data-at='{decision.at_s:.3f}'></time><span class='tide'>{escape(word)}</span>"
        f"<span class='sentence'>{escape(decision.sentence)}</span></summary><dl>{behind}</dl>"
    )


def _arguments(decision: Decision) -> dict[str, object]:
    """What the executor was given; a document of its own is shown by its fields."""
    fields: dict[str, object] = msgspec.to_builtins(decision.action)
    del fields["kind"]
    only = next(iter(fields.values()), None)
    return only if len(fields) == 1 and isinstance(only, dict) and "takers" not in fields else fields


def _short(value: object) -> str:
    return f"{value:,.4g}" if isinstance(value, float) else str(value)


def _key(decision: Decision) -> tuple[float, str]:
    return decision.at_s, decision.sentence
