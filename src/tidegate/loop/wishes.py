"""Wishes: what policies and rules want of one family, and what of that is not done."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

import msgspec

from tidegate.loop import sentences
from tidegate.loop.families import FAMILIES
from tidegate.loop.knowledge import Knowledge, Standing
from tidegate.loop.plans import PlanRun
from tidegate.loop.policy import Judgement
from tidegate.model.intents import Intent, Priority, Reason, Value

RULE_LIFETIME_S = 10.0

Constraint = Literal["priority", "mode", "promise", "cool-down", "budget", "under way"]


class Wish(NamedTuple):
    """What somebody wants of one family. Where several do, ``owners`` has whose word each intent is, and ``by`` whose
    is the strongest."""

    by: str
    phase: str
    intents: dict[str, Intent]  # by member
    owners: Mapping[str, str] = MappingProxyType({})

    def by_of(self, member: str) -> str:
        return self.owners.get(member, self.by)

    def not_done(self, done: Mapping[str, Value], constraint: Constraint, words: str) -> list["Withheld"]:
        """Nothing of it is done, or something else is, by member."""
        return [
            not_done(self.by_of(member), intent, done.get(member), constraint, words)
            for member, intent in self.intents.items()
        ]


class Withheld(msgspec.Struct, frozen=True, kw_only=True):
    """An intent that was not followed: what is done in its place (None: nothing), and what stood between."""

    resource: str
    by: str
    wanted: Value
    done: Value | None
    constraint: Constraint
    sentence: str

    def stands_between(self, run: PlanRun) -> bool:
        """Whether it is what a plan wants now; what is promised to devices is done in its place, and as good."""
        return self.by == rule_name(run) and self.resource in run.due and self.constraint != "promise"


def rule_name(run: PlanRun) -> str:
    """Whose word it is."""
    return f"rule {run.plan.by}"


def wishes(by: str, families: Iterable[str], judgement: Judgement) -> dict[str, Wish]:
    """By family; those of which nothing is wanted are there as well."""
    found = {family: Wish(by, judgement.finding.phase, {}) for family in families}
    for intent in judgement.intents:
        found[intent.family].intents[intent.member] = intent
    return found


def wishes_of(run: PlanRun) -> dict[str, Wish]:
    """What a rule's plan wants now, by family."""
    found: dict[str, Wish] = {}
    reason = run.plan.reason
    if run.state == "undoing":
        reason = msgspec.structs.replace(
            reason,
            rule=f"rule {run.plan.by} is taken back, last step first",
            rejected="leave it as it is: nobody has said that it shall stay",
            because=f"{run.trouble} (rule {run.plan.by})",
        )
    for resource, value in run.wanted.items():
        intent = Intent(
            resource=resource,
            wanted=value,
            priority=Priority.PROTECT_DATA,
            reason=reason,
            lifetime_s=RULE_LIFETIME_S if FAMILIES[resource.partition("/")[0]].lapses else 0.0,
        )
        wish = found.setdefault(intent.family, Wish(rule_name(run), run.state, {}))
        wish.intents[intent.member] = intent
    return found


def unchanged(family: str, knowledge: Knowledge) -> Wish:
    """Of a policy that cannot say yet what it wants: that what it said before stays."""
    reason = Reason(
        measurements=knowledge.chain,
        rule="before a whole window was seen, what was said before holds",
        rejected="let it go: nothing is known that would speak for that",
        because="what was said before holds",
    )
    lifetime_s = knowledge.in_force.get(family, Standing()).lifetime_s
    intents = {
        member: Intent(
            resource=f"{family}/{member}", wanted=value, priority=Priority.SAVE, reason=reason, lifetime_s=lifetime_s
        )
        for member, value in knowledge.kept_to(family).items()
    }
    return Wish("what was said before", "", intents)


def not_done(by: str, intent: Intent, done: Value | None, constraint: Constraint, words: str) -> Withheld:
    sentence = f"{by} wants {sentences.value(intent.resource, intent.wanted)}: not done because {words}."
    return Withheld(
        resource=intent.resource, by=by, wanted=intent.wanted, done=done, constraint=constraint, sentence=sentence
    )
