"""What is worth telling of a round: the difference between two states of the loop."""

from collections.abc import Iterator

from tidegate.loop.events import EventState
from tidegate.loop.knowledge import Knowledge
from tidegate.loop.plans import PlanRun
from tidegate.loop.state import LoopState
from tidegate.model.notices import ActionPlan, EventNotification, Notice, RangeChange


def notices(before: LoopState, after: LoopState, knowledge: Knowledge) -> tuple[Notice, ...]:
    """In the order in which things follow from each other: ranges, events, plans."""
    return (*_ranges(before, after, knowledge), *_events(before, after, knowledge), *of_plans(before, after))


def _ranges(before: LoopState, after: LoopState, knowledge: Knowledge) -> Iterator[RangeChange]:
    for name, level in after.ranges.items():
        was = before.ranges.get(name, level)
        if level != was:
            source, _, known = name.rpartition(".")
            value = knowledge.properties[source][known]
            yield RangeChange(
                at_s=knowledge.measured_at_s, source=source, property=known, value=value, was=was, now=level
            )


def _events(before: LoopState, after: LoopState, knowledge: Knowledge) -> Iterator[EventNotification]:
    for name in sorted(before.events.keys() | after.events.keys()):
        active = after.events.get(name, EventState()).active
        if active != before.events.get(name, EventState()).active:
            yield EventNotification(at_s=knowledge.measured_at_s, event=name, active=active, measured=knowledge.chain)


def of_plans(before: LoopState, after: LoopState) -> Iterator[ActionPlan]:
    """They go on between rounds, too: when it is said what came of an action."""
    known = {run.plan.id: run for run in before.runs}
    for run in after.runs:
        was = known.get(run.plan.id)
        if was is None or _told(was) != _told(run):
            yield ActionPlan(
                at_s=after.at_s,
                plan=run.plan.id,
                rule=run.plan.by,
                event=run.plan.event,
                state=run.state,
                step=run.step + 1,
                steps=len(run.plan.steps),
                trouble=run.trouble,
            )


def _told(run: PlanRun) -> tuple[str, int, str]:
    return run.state, run.step, run.trouble
