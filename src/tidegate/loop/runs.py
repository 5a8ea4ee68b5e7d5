"""The plans of rules that are under way, beside each other: which goes on, whose word counts, and what each hears."""

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from tidegate.loop import plans
from tidegate.loop.families import actual_values
from tidegate.loop.knowledge import Knowledge
from tidegate.loop.plans import PlanRun
from tidegate.loop.wishes import Withheld
from tidegate.model.intents import Value
from tidegate.model.plans import Plan, Step

Steps = Mapping[str, tuple[Step, ...]]  # of the rules whose events are under way, by name


def advanced(
    under_way: Sequence[PlanRun],
    steps: Steps,
    knowledge: Knowledge,
    *,
    knows_rules: bool,
    applied_anew: bool,
) -> list[PlanRun]:
    """Those that are not over, a step further where they can go on. One that is stuck stays until a person has seen it,
    and applied rules anew; while nobody knows the rules, all stay."""
    over = {"done", "undone", "stuck"} if applied_anew else {"done", "undone"}
    found = []
    for run in under_way:
        if run.state not in over:
            actual = before_rules([other for other in under_way if other is not run], run.plan, knowledge)
            stays = not knows_rules or steps.get(run.plan.by) == run.plan.steps
            found.append(plans.advance(run, knowledge, actual, event_active=stays))
    return with_what_stays(found)


def followed(under_way: Iterable[PlanRun], steps: Steps) -> set[str]:
    """The rules whose plans are under way as they are written now."""
    return {run.plan.by for run in under_way if steps.get(run.plan.by) == run.plan.steps}


def in_order(under_way: Iterable[PlanRun], names: Sequence[str]) -> list[PlanRun]:
    """As rules are written; what is taken back comes last, and what is of no rule any more behind that."""
    places = {name: place for place, name in enumerate(names)}
    return sorted(under_way, key=lambda run: (run.state == "undoing", places.get(run.plan.by, len(places))))


def before_rules(others: Iterable[PlanRun], plan: Plan, knowledge: Knowledge) -> dict[str, Value]:
    """What a plan goes back to: what is so now; where another plan that is not over changes it, what was so before
    that."""
    found = actual_values(knowledge, plan.resources)
    for run in reversed([run for run in others if not run.is_over]):
        for before in reversed(run.before):
            found.update({name: value for name, value in before.items() if name in plan.resources})
    return found


def with_what_stays(under_way: Sequence[PlanRun]) -> list[PlanRun]:
    """What a plan leaves behind that is done and stays is what the others go back to."""
    left: dict[str, Value] = {}
    for run in under_way:
        if run.state == "done":
            left |= {name: value for step in run.plan.steps for name, value in step.wanted.items()}
    return [run if run.state == "done" or not left else _going_back_to(left, run) for run in under_way]


def _going_back_to(left: Mapping[str, Value], run: PlanRun) -> PlanRun:
    before = tuple({name: left.get(name, value) for name, value in step.items()} for step in run.before)
    return msgspec.structs.replace(run, before=before)


def shifted(under_way: Sequence[PlanRun], idle_s: float) -> tuple[PlanRun, ...]:
    """Time in which nothing was decided is not theirs."""
    return tuple(msgspec.structs.replace(run, since_s=run.since_s + idle_s) if idle_s else run for run in under_way)


def heard(run: PlanRun, family: str, trouble: str | None, now_s: float) -> PlanRun:
    """What came of an action, as far as it was this plan's."""
    touched = any(name.partition("/")[0] == family for name in run.due)
    return plans.told(run, trouble, now_s) if touched and not run.carried_out and not run.withheld else run


def tried(run: PlanRun, withheld: Iterable[Withheld], knowledge: Knowledge) -> PlanRun:
    """Whether something stood in the way of what is due. The operator's mode may do so for as long as he likes; and
    what somebody else has a word on, or cools down, need not be taken back."""
    if run.carried_out or run.is_over:
        return run
    held = next((one for one in withheld if one.stands_between(run)), None)
    if held is None:
        return msgspec.structs.replace(run, withheld="")
    if held.constraint == "mode":
        return msgspec.structs.replace(run, withheld=held.sentence, since_s=knowledge.at_s)
    if run.state == "undoing" and held.constraint != "under way":
        return plans.told(run, None)
    return msgspec.structs.replace(run, withheld=held.sentence)


def settled(run: PlanRun, said_of: Collection[str]) -> PlanRun:
    """A plan whose wishes nobody had to be told of: it is so already."""
    waits = any(name.partition("/")[0] in said_of for name in run.due)
    return run if waits or run.carried_out or run.is_over or run.withheld else plans.told(run, None)
