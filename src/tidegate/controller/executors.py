"""Carrying out actions: each kind has one executor, and each executor writes one document that others follow."""

from typing import Any

import msgspec

from tidegate.bus.assignments import Assignments
from tidegate.bus.knowledge import Knowledge
from tidegate.model.advice import ADVICE_KEY, Advice
from tidegate.model.decisions import Action
from tidegate.model.routes import ROUTES_KEY, Routes
from tidegate.model.scaling import SCALE_KEY, Scale


class Executors:
    """Belongs to the thread of its knowledge."""

    def __init__(self, knowledge: Knowledge) -> None:
        self._knowledge = knowledge
        self._assignments = Assignments(knowledge)
        self._by_kind = {"advise": self._advise, "route": self._route, "scale": self._scale, "move": self._move}

    def carry_out(self, action: Action) -> None:
        self._by_kind[action.kind](action.arguments)

    def _advise(self, arguments: dict[str, Any]) -> None:
        """Advice runs out on the bus as well: a gateway that starts later must not find a dead leader's."""
        advice = msgspec.convert(arguments, Advice)
        self._knowledge.put(ADVICE_KEY, msgspec.json.encode(advice), lease_s=advice.lifetime_s)

    def _route(self, arguments: dict[str, Any]) -> None:
        routes = msgspec.convert(arguments, Routes)
        self._knowledge.put(ROUTES_KEY, msgspec.json.encode(routes))

    def _scale(self, arguments: dict[str, Any]) -> None:
        scale = msgspec.convert(arguments, Scale)
        self._knowledge.put(SCALE_KEY, msgspec.json.encode(scale))

    def _move(self, arguments: dict[str, Any]) -> None:
        """A refusal is no error: a node that went meanwhile, or a slice that has arrived, is seen in the next round."""
        self._assignments.move_all(msgspec.convert(arguments["takers"], dict[int, str], strict=False))
