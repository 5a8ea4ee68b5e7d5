"""What is in force: of every family what was said last, whether anybody was really told, and for how long it holds.

Written once for all of them: what is a decision, what only a renewal, what is asked for again because it did not come,
and what shadow mode leaves undone. Send rates are a lease: while they hold devices back they are told again at a third
of their lifetime, and a withdrawal for one lifetime, after which no lease of what was told before can be left. What
does not lapse is told again while it is not so.
"""

from typing import Literal, Protocol

import msgspec

from tidegate.loop.knowledge import NEVER_S, Knowledge, Standing
from tidegate.model.actions import Action
from tidegate.model.effects import Effect
from tidegate.model.intents import Value

REPEATED_S = 10.0

Values = dict[str, Value]
Said = Literal["decided", "again"]


class Family(Protocol):
    """Resources that one action speaks for; their values are by member."""

    @property
    def name(self) -> str: ...

    @property
    def lapses(self) -> bool:
        """Whether what is said of it holds only for a while, so that silence takes it back."""
        ...

    def actual(self, knowledge: Knowledge) -> Values:
        """What is so, whoever made it so."""
        ...

    def is_same(self, before: Values, after: Values) -> bool: ...

    def lifetime_s(self, wanted: Values, before: Standing, lifetime_s: float, now_s: float) -> float: ...

    def is_withdrawal(self, values: Values) -> bool: ...

    def effect(self, wanted: Values, knowledge: Knowledge) -> Effect | None:
        """What this will have changed, if it works; None where nothing can be told of that."""
        ...

    def is_followed(self, values: Values, knowledge: Knowledge) -> bool:
        """Whether what is asked now shows in what is measured, whatever was expected of it."""
        ...

    def is_stronger(self, wanted: Values, instead: Values, expected: Effect) -> bool:
        """Whether it goes further than what was so before, in the way that was to have this effect."""
        ...

    def action(self, standing: Standing) -> Action: ...


def step(
    family: Family,
    before: Standing,
    wanted: Values,
    knowledge: Knowledge,
    lifetime_s: float,
    *,
    acts: bool,
    to_others: bool = False,
) -> tuple[Standing, Said | None]:
    """What is in force after somebody wanted this, and what has to be said of it. ``to_others``: it is meant for
    others than before, who have to be told whatever it is."""
    now_s, actual = knowledge.at_s, family.actual(knowledge)
    if acts and not before.acted and before.behind is not None:
        before = before.behind  # what was told before the shadow goes on
    if before.is_over(now_s):
        before = Standing(acted=before.acted, share=before.share, until_s=before.until_s)
    known = before.values if before.acted == acts else actual
    matters = not (family.is_withdrawal(before.values) and family.is_withdrawal(wanted))
    if not family.is_same(known, wanted) or (to_others and matters):
        lasting_s = family.lifetime_s(wanted, before, lifetime_s, now_s)
        told = Standing(
            values=wanted,
            acted=acts,
            decided_at_s=now_s,
            told_at_s=now_s,
            reached_at_s=_reached_at_s(before),
            lifetime_s=lasting_s,
            until_s=_until_s(family, before, wanted, now_s + lasting_s) if acts else before.until_s,
            behind=None if acts or not family.lapses else _bare(before.told),
        )
        return told, "decided"
    if not family.lapses:  # what does not lapse is in force by being so
        before = msgspec.structs.replace(before, values=wanted, acted=acts)
    if not (acts and before.acted):
        return before, None
    if family.lapses:
        due = _renewal_due(before, now_s, withdrawn=family.is_withdrawal(before.values))
    else:
        due = not family.is_same(actual, wanted) and not 0 <= now_s - before.told_at_s < REPEATED_S
    if not due:
        return before, None
    reached_at_s = _reached_at_s(before)
    until_s = _until_s(family, before, before.values, now_s + before.lifetime_s)
    again = msgspec.structs.replace(before, told_at_s=now_s, reached_at_s=reached_at_s, until_s=until_s, failed=False)
    return again, "again"


def _reached_at_s(before: Standing) -> float:
    """When somebody was last told for certain. A shadow is heard by nobody."""
    return before.told.told_at_s if before.told.values else NEVER_S


def _until_s(family: Family, before: Standing, values: Values, ends_s: float) -> float:
    """Nobody has to be freed of a withdrawal."""
    return before.until_s if family.is_withdrawal(values) else max(before.until_s, ends_s)


def _bare(told: Standing) -> Standing | None:
    """What was told, without what lies behind that; None where nobody was told anything."""
    return msgspec.structs.replace(told, behind=None) if told.values else None


def _renewal_due(standing: Standing, now_s: float, *, withdrawn: bool) -> bool:
    if standing.failed:
        return True
    if withdrawn and now_s >= min(standing.decided_at_s, now_s) + standing.lifetime_s:
        return False
    if now_s < standing.told_at_s:  # the clock went back: nobody knows how long ago that was
        return True
    return now_s >= standing.told_at_s + standing.lifetime_s / 3
