"""All that the controller keeps on the control bus, behind one connection and one thread.

The lease, the operator's mode, the loop's state, the documents that gateways follow and the audit log share a thread,
so what is carried out is carried out in order, and the lease is looked at right before each of it.
"""

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from tidegate.bus.audit import AuditLog
from tidegate.bus.client import Bus
from tidegate.bus.documents import APPLIED, APPLY, AUDIT, LEADER_SETTINGS, LOOP_STATE, MODE, RULES
from tidegate.bus.journals import JournalReader
from tidegate.bus.key_value import Entry
from tidegate.bus.leases import LeaderLease
from tidegate.controller.clock import EARLIER_S
from tidegate.controller.executors import Executors
from tidegate.loop.families import family_of
from tidegate.loop.planner import PlannerState
from tidegate.loop.rounds import Round
from tidegate.loop.rules import AppliedRules
from tidegate.loop.state import LoopState
from tidegate.model.decisions import POLICIES, Applied, Apply, Decision, Mode, Proposal
from tidegate.model.errors import BrokerUnavailableError, DamagedDocumentError, TidegateError
from tidegate.model.notices import Notice
from tidegate.model.view import DECISIONS_SHOWN, NOTICES_SHOWN

PENDING_S_MAX = 30.0  # a new leader is there within seconds
RECENT = 50
ANSWER_S = 60.0  # so long an operator can find what came of his word


class NotLeadingError(TidegateError):
    """The lease may have run out: nothing more may be carried out."""


class Carried(NamedTuple):
    """What was written down, what came of each plan, and what stopped it before its end."""

    written: list[Decision]
    results: dict[str, str | None]
    error: TidegateError | None


class Acting:
    """Belongs to one thread, but for ``lease.may_act`` and ``lease.leader``."""

    def __init__(self, urls: Sequence[str], name: str, lease_s: float) -> None:
        # An answer that takes longer than this would come when the lease has no margin left.
        self._bus = Bus(urls, timeout_s=lease_s / 3, name=name)
        self._name = name
        self._executors = Executors(self._bus)
        self._stored: LoopState | None = None
        self._revision = 0  # of the loop's state
        self._known: LoopState | None = None  # what was read or written of it last
        self._written_s: float | None = None  # when, by the bus's clock
        self._times = JournalReader(self._bus, AUDIT)
        self.damage: DamagedDocumentError | None = None  # why it could not be read
        self._decisions: tuple[Decision, ...] = ()
        self._decisions_upto = 0
        self.audit = AuditLog(self._bus)
        self.lease = LeaderLease(self._bus, name, lease_s)

    def close(self) -> None:
        self.lease.end()
        self._bus.close()

    # -- what others wrote

    def mode(self) -> Mode:
        return self._bus.get(MODE) or Mode()

    def change_mode(self, changes: Mapping[str, object], say: Callable[[str], None]) -> Mode:
        return change_mode(self._bus, changes, say)

    def word(self) -> Apply | None:
        """The operator may want what is wanted now carried out once. His word is taken off the bus before it is obeyed:
        nobody obeys it twice."""
        entry = self._bus.entry(APPLY)
        if entry is None:
            return None
        self._check_lease()
        self._bus.delete(APPLY, revision=entry.revision)
        with contextlib.suppress(DamagedDocumentError):
            return APPLY.decode(entry.value)
        return None

    def rules(self) -> AppliedRules | None:
        """What the operator wants done when something happens; None where he has never said anything."""
        return self._bus.get(RULES)

    def state(self) -> LoopState:
        """What the leader, or the last one, knew. Where that cannot be read, it is what this controller knew last, and
        the next that is kept goes over what is damaged."""
        entry = self._bus.entry(LOOP_STATE)
        self._revision, self._stored = 0 if entry is None else entry.revision, None
        self._written_s, self.damage = None, None
        if entry is None:
            self._known = None
            return self._beginning()
        try:
            self._known, self._written_s = self._numbered_on(LOOP_STATE.decode(entry.value)), entry.written_s
        except DamagedDocumentError as error:
            self.damage = error
        return self._known or self._beginning()

    def _beginning(self) -> LoopState:
        """Nothing is known but how many plans the audit has."""
        return LoopState(planner=PlannerState(plans=self._plans_audited()))

    def _numbered_on(self, state: LoopState) -> LoopState:
        """No two decisions bear one number, also where somebody has set the state back."""
        least = self._plans_audited() if self._known is None else self._known.planner.plans
        if state.planner.plans >= least:
            return state
        return msgspec.structs.replace(state, planner=msgspec.structs.replace(state.planner, plans=least))

    def _plans_audited(self) -> int:
        plans = (int(decision.plan) for decision in self.audit.last(RECENT) if decision.plan.isdecimal())
        return max(plans, default=0)

    def last_leaders_now_s(self, state: LoopState) -> float | None:
        """What time the loop of whoever wrote this state has now, if it goes on: by the bus's clock alone. None where
        nobody knows."""
        if self._written_s is None or not state.at_s:
            return None
        passed_s = self._times.ends().now_s - self._written_s
        if passed_s < -EARLIER_S:
            return None  # the bus's clock was set back meanwhile, or it has no audit to tell its time
        return state.at_s + max(0.0, passed_s)

    def decisions(self) -> tuple[Decision, ...]:
        """The newest of the audit log, read again only when there are new ones."""
        upto = self.audit.last_sequence()
        if upto != self._decisions_upto:
            self._decisions = self.audit.last(DECISIONS_SHOWN)
            self._decisions_upto = upto
        return self._decisions

    def notices(self) -> tuple[Notice, ...]:
        return self.audit.last_notices(NOTICES_SHOWN)

    # -- acting

    def lead_by(self, settings: dict[str, Any]) -> None:
        """Say what the loop is built from: who works out beside it what it would do needs the same."""
        self._check_lease()
        self._bus.put(LEADER_SETTINGS, settings)

    def answer(self, word: Apply, applied: Applied) -> None:
        self._check_lease()
        self._bus.put(APPLIED, applied, word.once, lease_s=ANSWER_S)

    def check_state(self) -> None:
        """Where somebody else has written the loop's state, or damaged it, it has to be read before more is decided."""
        entry = self._bus.entry(LOOP_STATE)
        if self._revision != (0 if entry is None else entry.revision):
            raise NotLeadingError(f"{self._name} has to read the loop's state: somebody else has written it.")

    def keep(self, state: LoopState) -> None:
        """Write the loop's state down for the next leader, where it changed. Where somebody else has written it since,
        he leads, whatever this one's clock says of its lease."""
        timeless = msgspec.structs.replace(state, at_s=0.0)
        if timeless != self._stored:
            self._check_lease()
            revision = self._bus.put(LOOP_STATE, state, revision=self._revision)
            if revision is None:
                raise NotLeadingError(f"{self._name} does not lead any more: another controller has acted.")
            self._revision, self._stored, self._known = revision, timeless, state

    def keep_round(self, name: str, played: Round) -> None:
        """Write down what the decisions of a round looked at, before anything is done."""
        self._check_lease()
        self.audit.append_round(name, played, once=f"{name}@{played.knowledge.at_s}")

    def tell(self, notices: Sequence[Notice]) -> None:
        """Everybody hears what is new; who hears it twice hears it once."""
        for notice in notices:
            self._check_lease()
            self.audit.append_notice(notice)

    def carry_out(self, proposals: Sequence[Proposal], refused: Mapping[str, str]) -> Carried:
        """Execute and write down, one after the other, until the bus or the lease is lost. Those that are ``refused``,
        by their plan, are only written down, with the reason."""
        carried = Carried([], {}, None)
        for proposal in proposals:
            try:
                trouble = refused[proposal.plan] if proposal.plan in refused else self._execute(proposal)
                # Whoever died meanwhile may have done it, written it down and said nothing any more.
                known = proposal.plan in refused and any(one.plan == proposal.plan for one in self.audit.last(RECENT))
                if proposal.recorded and not known:
                    carried.written.append(self._write_down(proposal, trouble))
            except (NotLeadingError, BrokerUnavailableError) as error:
                return carried._replace(error=error)
            carried.results[proposal.plan] = trouble
        return carried

    def _execute(self, proposal: Proposal) -> str | None:
        """Why it could not be carried out; None where it was, or where nobody shall be told."""
        if proposal.acts:
            self._check_lease()
            try:
                self._executors.carry_out(proposal.action)
            except BrokerUnavailableError:
                raise
            except TidegateError as error:
                return str(error)
        return None

    def _write_down(self, proposal: Proposal, trouble: str | None) -> Decision:
        decision = Decision(
            at_s=time.time(),
            controller=self._name,
            plan=proposal.plan,
            round=proposal.round,
            by=proposal.by,
            phase=proposal.phase,
            sentence=proposal.sentence,
            acted=proposal.acts and trouble is None,
            trouble=trouble or "",
            action=proposal.action,
            reason=proposal.reason,
            expects=proposal.expects,
        )
        self._check_lease()
        # Whoever takes over may write it down again: the log keeps one.
        self.audit.append(decision, once=f"{proposal.plan}@{proposal.at_s}")
        return decision

    def _check_lease(self) -> None:
        if not self.lease.may_act:
            raise NotLeadingError(f"{self._name} does not lead at the moment: another controller acts.")


def refusals(proposals: Iterable[Proposal], mode: Mode, now_s: float) -> dict[str, str]:
    """What was decided and must not be carried out any more, by its plan: the operator has said otherwise since, or it
    has waited so long that nobody knows whether it is still right."""
    found = {}
    for proposal in proposals:
        allowed = "frozen" if mode.frozen else mode.of(family_of(proposal.action))
        if proposal.acts and allowed in ("frozen", "shadow", "off"):
            found[proposal.plan] = f"it was decided before the operator's mode became {allowed}."
        elif proposal.acts and now_s - proposal.at_s > PENDING_S_MAX:
            waited_s = now_s - proposal.at_s
            found[proposal.plan] = (
                f"it was decided {waited_s:,.0f} s ago, and nobody knows whether it was carried out then."
            )
    return found


def change_mode(bus: Bus, changes: Mapping[str, object], say: Callable[[str], None] = lambda _: None) -> Mode:
    """Only what is changed: somebody else may change another part at the same moment, and freezing must not be lost.

    Nobody knows what a damaged mode allowed. It is written anew, and frozen, unless these changes say otherwise."""
    while True:
        entry = bus.entry(MODE)
        before = Mode() if entry is None else _readable(entry)
        mode = (before or Mode(frozen=True)).with_changes(changes)
        if mode == before:
            return mode
        if bus.put(MODE, mode, revision=0 if entry is None else entry.revision) is not None:
            if before is None:
                say(f"The mode on the control bus was damaged: {_written_anew(mode)}")
            return mode


def _readable(entry: Entry) -> Mode | None:
    try:
        return MODE.decode(entry.value)
    except DamagedDocumentError:
        return None


def _written_anew(mode: Mode) -> str:
    said = ", ".join(f"{name.replace('_', '-')} {getattr(mode, name)}" for name in POLICIES)
    held = "All acting is frozen until 'tidegate release'." if mode.frozen else "Nothing is frozen."
    return f"it is written anew ({said}), and what it allowed before is not known. {held}"
