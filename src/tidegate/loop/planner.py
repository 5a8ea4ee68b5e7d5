"""From what policies and rules want to proposals: whose word counts, what of it is new, and what may be carried out.

Precedence, per resource: protect data, protect the chain, meet targets, balance, save; between equals the one that is
named first. What was wanted and is not done is kept with the constraint that stood between.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import msgspec

from tidegate.control.send_rate.dead_bands import Band
from tidegate.loop import effects, in_force, sentences
from tidegate.loop.churn import Churn, cost_of
from tidegate.loop.cohorts import of_cohort, with_others
from tidegate.loop.effects import Check, Cooling
from tidegate.loop.families import FAMILIES, LIFETIME_INTERVALS, RouteTable, SendRates, family_of, paces, returned_to
from tidegate.loop.in_force import Family, Values
from tidegate.loop.knowledge import Knowledge, Standing
from tidegate.loop.promises import Promises
from tidegate.loop.wishes import Wish, Withheld, not_done
from tidegate.model.decisions import Mode, Proposal
from tidegate.model.effects import Effect
from tidegate.model.intents import EVERYBODY, Intent, Pace, Priority, Reason
from tidegate.model.notices import EffectReport

FADED_S, FADED_BAND = 0.1, 1.05  # an interval, or a dead band, that is none any more


class PlannerState(msgspec.Struct, frozen=True, kw_only=True):
    """What is in force by family, the dead bands that were worked out, which effects are waited for, what cools down,
    what may still be moved, and how many plans were made so far."""

    in_force: dict[str, Standing] = {}
    bands: dict[str, Band] = {}
    checks: dict[str, Check] = {}
    cooling: dict[str, Cooling] = {}
    churn: Churn = Churn()
    plans: int = 0


class Planned(NamedTuple):
    """``reports``: what came of earlier decisions."""

    state: PlannerState
    proposals: tuple[Proposal, ...]
    withheld: tuple[Withheld, ...]
    reports: tuple[EffectReport, ...] = ()


class _Round:
    """One round of the planner: what it has worked out so far."""

    def __init__(self, state: PlannerState, knowledge: Knowledge) -> None:
        checked = effects.step(state.checks, state.cooling, knowledge, knowledge.idle_s(state.churn.at_s))
        self.standing, self.bands = dict(state.in_force), state.bands
        self.checks, self.cooling, self.reports = checked.checks, checked.cooling, checked.reports
        self.churn = state.churn.grown(knowledge.at_s)
        self.plans = state.plans
        # Two leaders may come to the same number, one of them unaware that it leads no more: what they look at differs.
        self.name = f"{state.plans + 1}-{round(1000 * knowledge.at_s)}"
        self.proposals: list[Proposal] = []
        self.withheld: list[Withheld] = []

    def propose(self, made: Proposal, standing: Standing, family: str, *, recorded: bool) -> Proposal:
        """Number it. All of a round carry its name, which begins with the number of its first."""
        numbers = {"plan": str(self.plans + len(self.proposals) + 1), "round": self.name}
        self.proposals.append(msgspec.structs.replace(made, recorded=recorded, **numbers))
        self.standing[family] = standing
        return self.proposals[-1]

    def planned(self) -> Planned:
        after = PlannerState(
            in_force=self.standing,
            bands=self.bands,
            checks=self.checks,
            cooling=self.cooling,
            churn=self.churn,
            plans=self.plans + len(self.proposals),
        )
        return Planned(after, tuple(self.proposals), tuple(self.withheld), self.reports)


class Planner:
    """Pure: the same state, wishes and knowledge give the same plans."""

    def __init__(self, promises: Promises) -> None:
        self._promises = promises

    def step(
        self,
        state: PlannerState,
        wished: Mapping[str, Sequence[Wish]],
        knowledge: Knowledge,
        mode: Mode,
        under_way: Collection[str] = (),
    ) -> Planned:
        """What is in force from now on, and what makes it so. Of a family that is acted upon already (``under_way``)
        nothing else is decided."""
        made = _Round(state, knowledge)
        for name, several in wished.items():
            wish = self._allowed(name, _arbitrated(several, made.withheld), made, knowledge, mode)
            if name in under_way:
                words = f"what was decided of {name} before is not carried out yet"
                made.withheld.extend(wish.not_done({}, "under way", words))
            else:
                self._decide(name, wish, made, knowledge, mode)
        return made.planned()

    def _allowed(self, name: str, wish: Wish, made: _Round, knowledge: Knowledge, mode: Mode) -> Wish:
        """What is left of a wish by the operator's mode, and by what has come of it before."""
        allowed = mode.of(name)
        if allowed in ("shadow", "off"):
            made.withheld.extend(
                wish.not_done({}, "mode", f"{name} is {'in shadow mode' if allowed == 'shadow' else 'off'}")
            )
        if allowed == "off":
            return wish._replace(intents={})
        if allowed == "cohort" and name != SendRates.name:
            wish = of_cohort(name, wish, knowledge, mode.cohort_share, made.withheld)
            if name == RouteTable.name:
                wish = with_others(wish, FAMILIES[name].actual(knowledge))
        cooling = made.cooling.get(name)
        intents = effects.cooled(name, wish.intents, cooling, knowledge)
        if cooling is not None and intents != wish.intents:
            done = {member: intent.wanted for member, intent in intents.items()}
            made.withheld.extend(wish.not_done(done, "cool-down", cooling.because))
        return wish._replace(intents=intents)

    def _decide(self, name: str, wish: Wish, made: _Round, knowledge: Knowledge, mode: Mode) -> None:
        family, before = FAMILIES[name], made.standing.get(name, Standing())
        if not wish.intents and not family.lapses:
            made.standing[name] = Standing()  # what was asked for stays as it is, and is nobody's word any more
            return
        wanted: Values = {member: intent.wanted for member, intent in wish.intents.items()}
        lifetime_s = max((intent.lifetime_s for intent in wish.intents.values()), default=before.lifetime_s)
        share = mode.cohort_share if mode.of(name) == "cohort" and name == SendRates.name else 1.0
        fading: dict[str, float] = {}
        if name == SendRates.name:
            proven = self._proven(wish, before, paces(wanted), made, knowledge)
            if proven is None:
                return  # it has lapsed, and is shrinking by itself
            wanted, fading = proven
            made.withheld.extend(self._broken(wish, paces(wanted)))
            said, made.bands = self._promises.kept(paces(wanted), made.bands, knowledge)
            lifetime_s = max(lifetime_s, LIFETIME_INTERVALS * self._promises.longest_s(said))
            wanted = dict(said)
        acts = mode.of(name) != "shadow"
        standing, told = in_force.step(
            family, before, wanted, knowledge, lifetime_s, acts=acts, to_others=share != before.told.share
        )
        if family.lapses:
            half_life_s = self._promises.half_life_s
            standing = msgspec.structs.replace(standing, share=share, half_life_s=half_life_s, fading=fading)
        if told is None:
            made.standing[name] = standing
            return
        proposal = _proposal(family, standing, wish, knowledge)
        if told == "again":
            made.propose(proposal, standing, name, recorded=False)
            return
        _commit(proposal, standing, wish, made, knowledge)

    def _proven(
        self, wish: Wish, before: Standing, wanted: dict[str, Pace], made: _Round, knowledge: Knowledge
    ) -> tuple[Values, dict[str, float]] | None:
        """What may be said of it, and who is on his way out in it; None where nothing has to be said. Whoever is held
        because of what has lapsed is not let go at once where something has to be said of others."""
        unproven = self._unproven(wish, before, wanted, knowledge)
        if not unproven:
            return dict(wanted), {}
        refused = wish._replace(intents={name: wish.intents[name] for name in unproven})
        made.withheld.extend(refused.not_done({}, "promise", "no node is at its limit"))
        rest = {name: value for name, value in wanted.items() if name not in unproven}
        kept = paces(before.told.kept_to(knowledge.at_s))
        if not any(pace.holds for pace in rest.values()):
            return None if kept and not before.fading else ({EVERYBODY: Pace(interval_s=0.0)}, {})
        faded, due = self._faded({name: kept[name] for name in unproven if name in kept}, before, knowledge.at_s)
        return {EVERYBODY: Pace(interval_s=0.0), **faded, **rest}, due

    def _faded(self, kept: dict[str, Pace], before: Standing, now_s: float) -> tuple[dict[str, Pace], dict[str, float]]:
        """Half of it every half-life, until next to nothing is left."""
        half_life_s = self._promises.half_life_s
        left, due = {}, {}
        for name, pace in kept.items():
            at_s = before.fading.get(name, now_s + half_life_s)
            shrunk = pace.shrunk(0.5) if now_s >= at_s else pace
            if half_life_s and ((shrunk.interval_s or 0.0) > FADED_S or shrunk.dead_band > FADED_BAND):
                left[name], due[name] = shrunk, now_s + half_life_s if now_s >= at_s else at_s
        return left, due

    def _unproven(self, wish: Wish, before: Standing, wanted: dict[str, Pace], knowledge: Knowledge) -> tuple[str, ...]:
        """The classes that would begin to be held though nothing shows that they have to be. Whoever is held because of
        what has lapsed is on his way out; a rule needs no proof, and is none for anybody else."""
        told = before.told
        held = paces(told.kept_to(knowledge.at_s)) if told.is_renewed(knowledge.at_s) else {}
        held = {name: pace for name, pace in held.items() if name not in before.fading}
        asked = {name: pace for name, pace in wanted.items() if wish.intents[name].priority < Priority.PROTECT_DATA}
        return self._promises.begin_unproven(held, asked, knowledge)

    def _broken(self, wish: Wish, wanted: dict[str, Pace]) -> list[Withheld]:
        """What would break a promise."""
        found = []
        for name in self._promises.broken_by(wanted):
            member = name if name in wish.intents else EVERYBODY
            intent = wish.intents[member]
            refused = msgspec.structs.replace(intent, resource=f"{SendRates.name}/{name}")
            words = f"devices of class {name} are never delayed"
            found.append(not_done(wish.by_of(member), refused, Pace(interval_s=0.0), "promise", words))
        return found


def _commit(proposal: Proposal, standing: Standing, wish: Wish, made: _Round, knowledge: Knowledge) -> None:
    """A decision, if it may be paid for; what it is expected to change is looked for from now on."""
    family = FAMILIES[family_of(proposal.action)]
    cost = cost_of(proposal.action) if proposal.acts else 0.0
    priority = max((intent.priority for intent in wish.intents.values()), default=Priority.PROTECT_DATA)
    if not made.churn.allows(cost, priority):
        words = f"too much has been moved lately ({made.churn.moves:.0f} moves are left, it takes {cost:.0f})"
        made.withheld.extend(wish.not_done({}, "budget", words))
        return
    made.churn = made.churn.spent(cost)
    effect = _expected(family, proposal, standing, made, knowledge)
    proposal = msgspec.structs.replace(proposal, expects=effect)
    numbered = made.propose(proposal, standing, family.name, recorded=True)
    if effect is not None:
        made.checks[family.name] = Check(
            plan=numbered.plan,
            family=family.name,
            expects=effect,
            before=_before(family, standing.values, knowledge),
            since_s=knowledge.at_s,
            highest=knowledge.properties.get(effect.source, {}).get(effect.quantity) if family.lapses else None,
        )


def _expected(
    family: Family, proposal: Proposal, standing: Standing, made: _Round, knowledge: Knowledge
) -> Effect | None:
    """What a decision is to bring. One that takes back what is waited for ends the waiting; one that only changes what
    devices are asked goes on with it, or nothing would ever be found out of advice that changes twice a second."""
    waited = made.checks.get(family.name)
    if waited is not None:
        goes_on = proposal.acts and family.is_stronger(standing.values, waited.before, waited.expects)
        if goes_on and family.lapses:
            return None
        del made.checks[family.name]
    return family.effect(standing.values, knowledge) if proposal.acts and standing.share == 1.0 else None


def _arbitrated(several: Sequence[Wish], withheld: list[Withheld]) -> Wish:
    """One wish out of several: of each resource the intent that comes first. The wish is the strongest one's. Whoever
    speaks for everybody speaks for each class of which nobody that comes before it says something else."""
    chosen: dict[str, tuple[Wish, Intent]] = {}
    for wish in several:
        for member, intent in wish.intents.items():
            if member not in chosen or intent.priority > chosen[member][1].priority:
                chosen[member] = (wish, intent)
    if EVERYBODY in chosen:
        all_ = chosen[EVERYBODY]
        order = [id(wish) for wish in several]
        first = (-all_[1].priority, order.index(id(all_[0])))
        chosen = {name: one for name, one in chosen.items() if (-one[1].priority, order.index(id(one[0]))) <= first}
    for wish in several:
        for member, intent in wish.intents.items():
            winner, done = chosen[member if member in chosen else EVERYBODY]
            if winner is not wish and done.wanted != intent.wanted:
                words = f"{winner.by} comes before it: {done.priority.words} before {intent.priority.words}"
                withheld.append(not_done(wish.by, intent, done.wanted, "priority", words))
    strongest = max(chosen.values(), key=lambda one: one[1].priority, default=(several[0], None))[0]
    return strongest._replace(
        intents={member: intent for member, (_, intent) in chosen.items()},
        owners={member: wish.by_of(member) for member, (wish, _) in chosen.items()},
    )


def _before(family: Family, wanted: Values, knowledge: Knowledge) -> Values:
    """What was so, of what is wanted now."""
    actual = returned_to(family, knowledge)
    if family.name == SendRates.name:
        return {EVERYBODY: Pace(interval_s=0.0), **actual}
    return {member: value for member, value in actual.items() if member in wanted}


def _proposal(family: Family, standing: Standing, wish: Wish, knowledge: Knowledge) -> Proposal:
    strongest = max(wish.intents.values(), key=lambda intent: intent.priority, default=None)
    reason = _off(family, knowledge) if strongest is None else strongest.reason
    action = family.action(standing)
    return Proposal(
        at_s=knowledge.at_s,
        plan="",
        round="",
        by=wish.by,
        phase=wish.phase,
        events=knowledge.events,
        action=action,
        reason=reason,
        sentence=sentences.sentence(action, knowledge, reason.because),
        acts=standing.acted,
    )


def _off(family: Family, knowledge: Knowledge) -> Reason:
    return Reason(
        measurements=knowledge.chain,
        rule=f"the policy of {family.name} is off",
        rejected="go on as before: the operator does not allow it",
        because=f"{family.name} protection is off",
    )
