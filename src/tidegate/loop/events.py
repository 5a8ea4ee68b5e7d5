"""Events: an expression over properties that stays true for a while."""

import msgspec

from tidegate.loop.expressions import Expression, PropertyValues


class EventState(msgspec.Struct, frozen=True, kw_only=True):
    """``since_s``: when the expression became true; None while it is false."""

    since_s: float | None = None
    active: bool = False


class Event:
    """Begins when its expression has been true for ``for_s`` without a break; ends as soon as it is false."""

    def __init__(self, expression: Expression, for_s: float = 0.0) -> None:
        self._expression, self._for_s = expression, for_s

    def step(self, state: EventState, properties: PropertyValues, at_s: float) -> EventState:
        if not self._expression.holds(properties):
            return EventState()
        since_s = at_s if state.since_s is None else state.since_s
        return EventState(since_s=since_s, active=at_s - since_s >= self._for_s)
