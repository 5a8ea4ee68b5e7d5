"""Carrying out actions: each kind has one executor, and each executor writes one document that others follow."""

from typing import Any

import msgspec

from tidegate.bus.assignments import Assignments
from tidegate.bus.client import Bus
from tidegate.bus.documents import ADVICE, ROUTES, SCALE
from tidegate.model.advice import Advice
from tidegate.model.decisions import Action
from tidegate.model.routes import Routes
from tidegate.model.scaling import Scale


class Executors:
    """Belongs to the thread of its bus."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._assignments = Assignments(bus)
        self._by_kind = {"advise": self._advise, "route": self._route, "scale": self._scale, "move": self._move}

    def carry_out(self, action: Action) -> None:
        self._by_kind[action.kind](action.arguments)

    def _advise(self, arguments: dict[str, Any]) -> None:
        """Advice runs out on the bus as well: a gateway that starts later must not find a dead leader's."""
        advice = msgspec.convert(arguments, Advice)
        self._bus.put(ADVICE, advice, lease_s=advice.lifetime_s)

    def _route(self, arguments: dict[str, Any]) -> None:
        self._bus.put(ROUTES, msgspec.convert(arguments, Routes))

    def _scale(self, arguments: dict[str, Any]) -> None:
        self._bus.put(SCALE, msgspec.convert(arguments, Scale))

    def _move(self, arguments: dict[str, Any]) -> None:
        """A refusal is no error: a node that went meanwhile, or a slice that has arrived, is seen in the next round."""
        self._assignments.move_all(msgspec.convert(arguments["takers"], dict[int, str], strict=False))
