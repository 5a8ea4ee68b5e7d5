"""What the loop tells whoever listens: events that begin and end, plans on their way, properties that change range."""

import msgspec

from tidegate.model.effects import Effect


class _Notice(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    at_s: float


class EventNotification(_Notice, frozen=True, kw_only=True, tag="event"):
    """An event has begun or is over. ``measured``: the chain's properties at that moment."""

    event: str
    active: bool
    measured: dict[str, float] = {}


class ActionPlan(_Notice, frozen=True, kw_only=True, tag="plan"):
    """A plan of a rule has begun, has come to its next step, or to its end."""

    plan: str
    rule: str
    event: str
    state: str
    step: int  # that is due, from 1 on
    steps: int
    trouble: str = ""


class RangeChange(_Notice, frozen=True, kw_only=True, tag="range"):
    """A property has left its operation range. Ranges are counted from 0, the one below all bounds."""

    source: str
    property: str
    value: float
    was: int
    now: int


class EffectReport(_Notice, frozen=True, kw_only=True, tag="effect"):
    """What came of an action: the effect that it was expected to have, and what was measured. Of one that did not
    show, ``cooling_s`` says how long it is not made again."""

    plan: str
    family: str
    expects: Effect
    shown: bool
    value: float | None  # None where it could not be measured
    cooling_s: float = 0.0


Notice = EventNotification | ActionPlan | RangeChange | EffectReport


def kind_of(notice: Notice) -> str:
    return str(notice.__struct_config__.tag)


def sentence(notice: Notice) -> str:
    """What happened, as a sentence."""
    match notice:
        case EventNotification(event=event, active=active):
            return f"Event {event} {'begins' if active else 'is over'}."
        case ActionPlan(rule=rule, state=state, step=step, steps=steps, trouble=trouble):
            because = f": {trouble}" if trouble else ""
            return f"Rule {rule}: {state}, step {step} of {steps}{because}."
        case RangeChange(source=source, property=name, value=value, was=was, now=now):
            return f"{source} {name} is {value:,.4g}: in range {now}, was in {was}."
        case EffectReport(plan=plan, expects=expects, shown=True):
            return f"Decision {plan} works: {expects.words}."
        case EffectReport(plan=plan, expects=expects, value=None):
            return f"Nobody knows whether decision {plan} works: {expects.words} was not measured."
        case EffectReport(plan=plan, expects=expects, value=value, cooling_s=cooling_s):
            return (
                f"Decision {plan} is taken back, and not made again for {cooling_s:,.0f} s: it was to bring "
                f"{expects.words}, and that is {value}."
            )
