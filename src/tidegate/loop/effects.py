"""Actions are checked: what an action was expected to change is measured, and what did not come is taken back.

One check is under way per family. An effect that shows ends it. One that has not shown in time contradicts the action:
from then on, for a cool-down, what was so before takes the place of what is wanted, and says so. What nobody can
measure proves nothing either way, and is given up after a while.
"""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from tidegate.loop.families import FAMILIES, Slices
from tidegate.loop.in_force import Values
from tidegate.loop.knowledge import Knowledge, Standing
from tidegate.model.effects import Effect
from tidegate.model.intents import Intent, Owner, Reason
from tidegate.model.notices import EffectReport

COOLING_S = 120.0
RISING_S = 6.0  # two windows: so long what floods in is under-measured
LASTING_S, HIDDEN_S = 5.0, 1.0  # what only fluctuates is back sooner
GIVEN_UP = 10  # times the time in which an effect was to show, and nobody could measure it: it is looked for no more


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """``before``: what was so when it was decided, by member. ``highest``: the most that was measured of what is to
    fall, since then."""

    plan: str
    family: str
    expects: Effect
    before: Values
    since_s: float
    highest: float | None = None
    shows_s: float | None = None  # since when what was expected shows
    hides_s: float | None = None  # since when it does not

    def seen(self, value: float, at_s: float, now_s: float, *, followed: bool) -> "Check":
        """A flood that is still rising was under-measured when it was decided on: it has to fall from where it was at
        its highest, by the share that was expected. ``followed``: what is asked by now shows, which may be less than
        was asked first. ``now_s``: the clock may have been set back."""
        check, below = self, self.expects.below
        if below is not None and self.highest is not None and value > self.highest and at_s - self.since_s <= RISING_S:
            expects = msgspec.structs.replace(self.expects, below=below * value / self.highest)
            check = msgspec.structs.replace(self, expects=expects, highest=value)
        shows = followed or check.expects.holds(value)
        since_s = self.shows_s if shows else self.hides_s
        since_s = at_s if since_s is None else min(since_s, at_s)
        found = {"shows_s": since_s, "hides_s": None} if shows else {"shows_s": None, "hides_s": since_s}
        return msgspec.structs.replace(check, since_s=min(self.since_s, now_s), **found)

    def has_shown(self, at_s: float) -> bool:
        """What fluctuates falls by chance, and not for long."""
        lasting_s = 0.0 if self.highest is None else LASTING_S
        return self.shows_s is not None and at_s - self.shows_s >= lasting_s

    def has_not(self, at_s: float) -> bool:
        """That in which it was to show is over, and it is not there: for a moment already, or again and again."""
        late_s, hidden_s = at_s - self.since_s - self.expects.within_s, 0.0 if self.highest is None else HIDDEN_S
        if late_s < 0 or self.hides_s is None:
            return False
        return at_s - self.hides_s >= hidden_s or late_s >= 2 * LASTING_S


class Cooling(msgspec.Struct, frozen=True, kw_only=True):
    """``expected`` did not come; ``instead`` is wanted in the place of what was to bring it, by member."""

    instead: Values
    expected: Effect
    until_s: float
    because: str


class Checked(NamedTuple):
    checks: dict[str, Check]
    cooling: dict[str, Cooling]
    reports: tuple[EffectReport, ...]


def step(checks: Mapping[str, Check], cooling: Mapping[str, Cooling], knowledge: Knowledge, idle_s: float) -> Checked:
    """Which effects have shown by now, and which did not come; all by family. Before a whole window was seen nobody
    knows. Time in which nothing was decided (``idle_s``) does not count."""
    if idle_s:
        checks = {name: msgspec.structs.replace(one, since_s=one.since_s + idle_s) for name, one in checks.items()}
    open_, cools, reports = dict(checks), {}, []
    for name, one in cooling.items():
        # Where the clock was set back a cool-down is no longer than it would have been.
        if one.until_s >= knowledge.at_s:
            until_s = min(one.until_s, knowledge.at_s + COOLING_S)
            cools[name] = msgspec.structs.replace(one, until_s=until_s)
    for name, check in checks.items() if knowledge.complete else ():
        value = knowledge.properties.get(check.expects.source, {}).get(check.expects.quantity)
        if value is not None:
            asked = knowledge.in_force.get(name, Standing()).values
            followed = FAMILIES[name].is_followed(asked, knowledge)
            check = check.seen(value, knowledge.measured_at_s, knowledge.at_s, followed=followed)  # noqa: PLW2901
            open_[name] = check
        passed_s = knowledge.measured_at_s - check.since_s
        if value is not None and check.has_shown(knowledge.measured_at_s):
            del open_[name]
            reports.append(_report(check, knowledge, value, cooling_s=0.0))
        elif value is not None and check.has_not(knowledge.measured_at_s):
            del open_[name]
            cools[name] = Cooling(
                instead=check.before,
                expected=check.expects,
                until_s=knowledge.at_s + COOLING_S,
                because=_because(check, value),
            )
            reports.append(_report(check, knowledge, value, cooling_s=COOLING_S))
        elif passed_s >= GIVEN_UP * check.expects.within_s:
            del open_[name]
            reports.append(_report(check, knowledge, None, cooling_s=0.0))
    return Checked(open_, cools, tuple(reports))


def cooled(
    family: str, intents: Mapping[str, Intent], cooling: Cooling | None, knowledge: Knowledge
) -> dict[str, Intent]:
    """The same intents, with what was so before in the place of what was contradicted. A slice does not go back to a
    node that is gone, and one of which nothing was contradicted goes where it shall."""
    if cooling is None:
        return dict(intents)
    wanted = {member: intent.wanted for member, intent in intents.items()}
    if not FAMILIES[family].is_stronger(wanted, cooling.instead, cooling.expected):
        return dict(intents)
    first = next(iter(intents.values()))
    reason = Reason(
        measurements=first.reason.measurements,
        rule="an action whose effect does not show is taken back, and not made again for a while",
        rejected=f"do it all the same: {first.reason.rule}",
        because=cooling.because,
    )
    working = {node.name for node in knowledge.nodes if node.alive}
    instead = {
        member: msgspec.structs.replace(
            first, resource=f"{family}/{member}" if member else family, wanted=value, reason=reason
        )
        for member, value in cooling.instead.items()
        if not isinstance(value, Owner) or value.node in working
    }
    others = dict(intents) if family == Slices.name else {}
    return {**others, **instead}


def _report(check: Check, knowledge: Knowledge, value: float | None, cooling_s: float) -> EffectReport:
    return EffectReport(
        at_s=knowledge.at_s,
        plan=check.plan,
        family=check.family,
        expects=check.expects,
        shown=value is not None and cooling_s == 0,
        value=value,
        cooling_s=cooling_s,
    )


def _because(check: Check, value: float) -> str:
    effect = check.expects
    return f"decision {check.plan} was to bring {effect.words}, and it is {value:,.4g}"
