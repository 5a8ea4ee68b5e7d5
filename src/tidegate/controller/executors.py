"""Carrying out actions: each kind has one executor, and each executor writes one document that others follow."""

from collections.abc import Mapping

from tidegate.bus.assignments import Assignments
from tidegate.bus.client import Bus
from tidegate.bus.documents import ADVICE, ROUTES, SCALE
from tidegate.model.actions import Action, Advise, MoveSlices, Reconfigure, Route, ScaleNodes
from tidegate.model.errors import TidegateError
from tidegate.model.scaling import Scale


class Executors:
    """Belongs to the thread of its bus."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self._assignments = Assignments(bus)

    def carry_out(self, action: Action) -> None:
        match action:
            case Advise(advice=advice):
                # Advice runs out on the bus as well: a gateway that starts later must not find a dead leader's.
                self._bus.put(ADVICE, advice, lease_s=advice.lasts_s)
            case Route(routes=routes):
                self._bus.put(ROUTES, routes)
            case ScaleNodes(nodes_wanted=wanted):
                self._bus.put(SCALE, Scale(nodes_wanted=wanted))
            case MoveSlices(takers=takers):
                self._move(takers)
            case Reconfigure():
                pass  # whoever leads follows what is in force

    def _move(self, takers: Mapping[int, str]) -> None:
        """That some cannot be moved is no error, it is seen next round; that none can is. One that is there already has
        been moved."""
        refused = self._assignments.move_all(takers)
        if len(refused) < len(takers):
            return
        owned = self._assignments.current()
        there = {
            slice_ for node in set(takers.values()) for slice_ in owned.owned_by(node) if takers.get(slice_) == node
        }
        reasons = dict.fromkeys(why for slice_, why in refused.items() if slice_ not in there)
        if reasons:
            raise TidegateError(f"No slice can be moved: {'; '.join(reasons)}.")
