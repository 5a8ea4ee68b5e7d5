"""Carrying out actions: each kind has one executor, and each executor writes one document that gateways follow."""

from typing import Any

import msgspec

from tidegate.brokers.knowledge import Knowledge
from tidegate.model.advice import ADVICE_KEY, Advice
from tidegate.model.decisions import Action
from tidegate.model.routes import ROUTES_KEY, Routes


class Executors:
    """Belongs to the thread of its knowledge."""

    def __init__(self, knowledge: Knowledge) -> None:
        self._knowledge = knowledge
        self._by_kind = {"advise": self._advise, "route": self._route}

    def carry_out(self, action: Action) -> None:
        self._by_kind[action.kind](action.arguments)

    def _advise(self, arguments: dict[str, Any]) -> None:
        """Advice runs out on the bus as well: a gateway that starts later must not find a dead leader's."""
        advice = msgspec.convert(arguments, Advice)
        self._knowledge.put(ADVICE_KEY, msgspec.json.encode(advice), lease_s=advice.lifetime_s)

    def _route(self, arguments: dict[str, Any]) -> None:
        routes = msgspec.convert(arguments, Routes)
        self._knowledge.put(ROUTES_KEY, msgspec.json.encode(routes))
