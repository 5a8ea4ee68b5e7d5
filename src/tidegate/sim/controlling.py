"""The controller in a world: the production loop, fed with what monitoring delivers, and its acts carried out."""

from collections.abc import Callable

from tidegate.loop.machine import ControlLoop
from tidegate.model.actions import Action, Advise, ScaleNodes
from tidegate.model.advice import Advice
from tidegate.model.decisions import Mode
from tidegate.model.observations import Observation


class SimulatedController:
    """``advice`` is what devices are told with their acknowledgements; ``scale`` starts and stops nodes."""

    def __init__(self, loop: ControlLoop, scale: Callable[[int], None]) -> None:
        self._loop, self._scale = loop, scale
        self._advice: Advice | None = None
        self._advised_s = 0.0
        self.phase = "idle"
        self.capacity_per_s: float | None = None
        self.decisions = 0

    def hear(self, observation: Observation, now_s: float) -> None:
        outcome = self._loop.tick(observation, Mode(), now_s=now_s)
        self.phase, self.capacity_per_s = outcome.sample.phase, outcome.sample.capacity_per_s
        for proposal in outcome.proposals:
            if proposal.acts:
                self.decisions += proposal.recorded
                self._carry_out(proposal.action, now_s)
        self._loop.carried_out(outcome.proposals)

    def advice(self, now_s: float) -> Advice | None:
        """What a device is told that sends now: the advice in force, with what is left of its lifetime."""
        return None if self._advice is None else self._advice.after(now_s - self._advised_s)

    def _carry_out(self, action: Action, now_s: float) -> None:
        """Routes and slices have no counterpart here."""
        match action:
            case Advise(advice=advice):
                self._advice = advice
                self._advised_s = now_s
            case ScaleNodes(nodes_wanted=wanted):
                self._scale(wanted)
