"""A plan on its way: one step after the other, each until its effect is there, and back again where one fails.

A step says what is wanted, and wanting it twice is wanting it once: whoever takes over goes on with the step that is
due, and nothing is done twice. Where a step fails or its effect does not show in time, the plan goes back, last step
first, to what was so before each. A step from which nobody knows the way back leaves the plan stuck there, and it says
so until a person has seen it. While a plan is on its way or in force, no policy has a word on what it has touched.
"""

from functools import lru_cache
from typing import Literal

import msgspec

from tidegate.loop.expressions import Expression
from tidegate.loop.families import FAMILIES
from tidegate.loop.knowledge import Knowledge
from tidegate.loop.monitors import names
from tidegate.model.intents import Value
from tidegate.model.plans import Plan, Step

ATTEMPTS_MAX, ATTEMPT_S = 3, 5.0
SEEN = ("nodes", "slice")  # families of which anybody can see what is so

State = Literal["doing", "in force", "undoing", "done", "undone", "stuck"]


class PlanRun(msgspec.Struct, frozen=True, kw_only=True):
    """``step`` is the one that is due, or, on the way back, the one that is taken back. ``before`` has what was so
    before each step that was begun; a resource of which that is not known is not in it."""

    plan: Plan
    state: State = "doing"
    step: int = 0
    before: tuple[dict[str, Value], ...] = ()
    carried_out: bool = False
    attempts: int = 0  # that failed, of this step
    tried_s: float = 0.0  # when the last of them was counted
    since_s: float = 0.0  # when this step was begun
    withheld: str = ""  # why what is due was not even tried
    trouble: str = ""

    def __post_init__(self) -> None:
        """What another version wrote, or nobody, would end every leader that takes it up."""
        whole = 0 <= self.step < len(self.plan.steps) and self.step < len(self.before)
        if not whole:
            raise ValueError(f"a plan at step {self.step} of {len(self.plan.steps)}")
        for step in self.plan.steps:
            if step.until is not None:
                _expression(step.until)

    @property
    def is_over(self) -> bool:
        return self.state in ("done", "undone", "stuck")

    @property
    def due(self) -> dict[str, Value]:
        """What the step wants that is due, by resource; or what taking it back does."""
        if self.is_over or self.state == "in force":
            return {}
        if self.state == "doing":
            return self.plan.steps[self.step].wanted
        return {name: value for name, value in self.before[self.step].items() if not _lapses(name)}

    @property
    def wanted(self) -> dict[str, Value]:
        """What it wants now, by resource. What lapses by itself is not gone back to: nobody has a word on it any more
        but the policy, which knows what is right now."""
        steps = self.plan.steps
        if self.is_over:
            return {}
        upto = len(steps) if self.state == "in force" else self.step + (self.state == "doing")
        wanted = {name: value for step in steps[:upto] for name, value in step.wanted.items()}
        if self.state != "undoing":
            return wanted
        return {**wanted, **self.due}


def begin(plan: Plan, actual: dict[str, Value], now_s: float) -> PlanRun:
    """``actual``: what is so now, by resource, as far as that is known."""
    return PlanRun(plan=plan, before=(_known(plan.steps[0], actual),), since_s=now_s)


def advance(run: PlanRun, knowledge: Knowledge, actual: dict[str, Value], *, event_active: bool) -> PlanRun:
    """Go on where the step that is due has come to its end, or took too long."""
    run = msgspec.structs.replace(run, since_s=min(run.since_s, knowledge.at_s))  # the clock may have been set back
    match run.state:
        case "doing" if not event_active and not run.plan.stays:
            return _abandoned(run, f"the event {run.plan.event} is over")
        case "doing":
            return _await_effect(run, knowledge, actual) if run.carried_out else _await_trial(run, knowledge)
        case "in force" if run.plan.stays:
            return msgspec.structs.replace(run, state="done")
        case "in force" if not event_active:
            return _back(run, len(run.plan.steps) - 1, f"the event {run.plan.event} is over")
        case "undoing" if run.carried_out:
            return _further_back(run, run.trouble)
    return run


def told(run: PlanRun, trouble: str | None, now_s: float = 0.0) -> PlanRun:
    """What came of what it wants now: None where it was carried out, or was so already; else why it was not. Tries that
    follow each other at once count as one: what stands in the way may be gone a moment later."""
    if trouble is None:
        return msgspec.structs.replace(run, carried_out=True)
    if run.attempts and 0 <= now_s - run.tried_s < ATTEMPT_S:
        return run
    if run.attempts + 1 < ATTEMPTS_MAX:
        kept = run.trouble if run.state == "undoing" else trouble  # why it is taken back
        return msgspec.structs.replace(run, attempts=run.attempts + 1, tried_s=now_s, trouble=kept)
    if run.state == "undoing":
        return _stuck(run, f"its way back failed: {trouble}")
    return _back(run, run.step, f"step {run.step + 1} of {len(run.plan.steps)} failed: {trouble}")


def _await_trial(run: PlanRun, knowledge: Knowledge) -> PlanRun:
    """What something stands in the way of for so long will not be done."""
    step, count = run.plan.steps[run.step], len(run.plan.steps)
    if not run.withheld or knowledge.at_s - run.since_s < step.within_s:
        return run
    return _back(run, run.step, f"step {run.step + 1} of {count} failed: {run.withheld}")


def _await_effect(run: PlanRun, knowledge: Knowledge, actual: dict[str, Value]) -> PlanRun:
    step, count = run.plan.steps[run.step], len(run.plan.steps)
    shows = step.until is None or _expression(step.until).holds(knowledge.chain)
    if shows and _is_so(step, knowledge):
        if run.step + 1 == count:
            return msgspec.structs.replace(run, state="in force", trouble="")
        return PlanRun(
            plan=run.plan,
            step=run.step + 1,
            before=(*run.before, _known(run.plan.steps[run.step + 1], actual)),
            since_s=knowledge.at_s,
        )
    if knowledge.at_s - run.since_s < step.within_s:
        return run
    what = "what it wants" if shows else repr(step.until)
    why = f"{what} did not come to hold within {step.within_s:g} s"
    return _back(run, run.step, f"step {run.step + 1} of {count} failed: {why}")


def _back(run: PlanRun, step: int, why: str) -> PlanRun:
    """Take a step back, unless nobody knows what was so before it."""
    back = msgspec.structs.replace(
        run, state="undoing", step=step, carried_out=False, attempts=0, withheld="", trouble=why
    )
    unknown = sorted(run.plan.steps[step].wanted.keys() - run.before[step].keys())
    return _stuck(back, f"how {', '.join(unknown)} was before it is not known") if unknown else back


def _abandoned(run: PlanRun, why: str) -> PlanRun:
    """Take back what was begun. A step that was not even tried has changed nothing."""
    return _further_back(run, why) if run.withheld else _back(run, run.step, why)


def _further_back(run: PlanRun, why: str) -> PlanRun:
    """Of this step nothing is left."""
    if run.step == 0:
        return msgspec.structs.replace(run, state="undone", withheld="", trouble=why)
    return _back(run, run.step - 1, why)


def _stuck(run: PlanRun, why: str) -> PlanRun:
    words = f"stuck at step {run.step + 1}, because {why}" + (f" ({run.trouble})" if run.trouble else "")
    return msgspec.structs.replace(run, state="stuck", trouble=words)


def _known(step: Step, actual: dict[str, Value]) -> dict[str, Value]:
    return {name: actual[name] for name in step.wanted if name in actual}


def _is_so(step: Step, knowledge: Knowledge) -> bool:
    """Whether what can be seen of it is there. Of what lapses, and of policies, that is what was told."""
    for name, value in step.wanted.items():
        family, _, member = name.partition("/")
        if family in SEEN and FAMILIES[family].actual(knowledge).get(member) != value:
            return False
    return True


def _lapses(resource: str) -> bool:
    return FAMILIES[resource.partition("/")[0]].lapses


@lru_cache(maxsize=256)
def _expression(text: str) -> Expression:
    return Expression(text, names(), "a plan's step")
