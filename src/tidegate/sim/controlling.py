"""The controller in a world: the production loop, fed with what monitoring delivers, and its acts carried out."""

from collections.abc import Callable
from typing import Any

from tidegate.loop.machine import ControlLoop
from tidegate.model.advice import Advice
from tidegate.model.decisions import Action, Mode
from tidegate.model.observations import Observation


class SimulatedController:
    """``advice`` is what devices are told with their acknowledgements; ``scale`` starts and stops nodes."""

    def __init__(self, loop: ControlLoop[Any], scale: Callable[[int], None]) -> None:
        self._loop, self._scale = loop, scale
        self._advice: Advice | None = None
        self._lapses_s = 0.0
        self.phase = "idle"
        self.capacity_per_s: float | None = None
        self.decisions = 0

    def hear(self, observation: Observation, now_s: float) -> None:
        outcome = self._loop.tick(observation, Mode(), now_s=now_s)
        self.phase, self.capacity_per_s = outcome.sample.phase, outcome.sample.capacity_per_s
        for proposal in outcome.proposals:
            if proposal.acts:
                self.decisions += proposal.recorded
                for action in proposal.plan.actions:
                    self._carry_out(action, now_s)

    def advice(self, now_s: float) -> Advice | None:
        """What a device is told that sends now: the advice in force, with what is left of its lifetime."""
        standing = self._advice
        if standing is None or now_s >= self._lapses_s:
            return None
        return Advice(
            interval_s=standing.interval_s,
            lifetime_s=self._lapses_s - now_s,
            classes=standing.classes,
            dead_bands=standing.dead_bands,
        )

    def _carry_out(self, action: Action, now_s: float) -> None:
        """Routes and slices have no counterpart here."""
        match action.kind:
            case "advise":
                self._advice = Advice(**action.arguments)
                self._lapses_s = now_s + self._advice.lifetime_s
            case "scale":
                self._scale(action.arguments["nodes_wanted"])
