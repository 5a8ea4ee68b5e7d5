"""Plans: what a rule wants done, step by step."""

import msgspec

from tidegate.model.intents import Reason, Value


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """What is wanted of which resources. It has come to its end once that is so and ``until`` holds, an expression over
    the chain's properties, which has to be within ``within_s``."""

    wanted: dict[str, Value]
    until: str | None = None
    within_s: float = 30.0


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """``stays``: what it has done lasts when its event is over; else it is taken back then, last step first."""

    id: str
    by: str  # the rule that wanted it
    event: str
    steps: tuple[Step, ...]
    reason: Reason
    stays: bool = False

    @property
    def resources(self) -> tuple[str, ...]:
        """All that it wants something of."""
        return tuple(name for step in self.steps for name in step.wanted)
