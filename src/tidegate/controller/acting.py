"""All that the controller keeps on the control bus, behind one connection and one thread.

The lease, the operator's mode, the loop's state, the documents that gateways follow and the audit log share a thread,
so what is carried out is carried out in order, and the lease is looked at right before each of it.
"""

import contextlib
import time
from collections.abc import Sequence

from tidegate.bus.audit import AuditLog
from tidegate.bus.client import Bus
from tidegate.bus.documents import LOOP_STATE, MODE
from tidegate.bus.leases import LeaderLease
from tidegate.controller.executors import Executors
from tidegate.loop.machine import LoopState
from tidegate.loop.planner import Proposal
from tidegate.model.decisions import SEND_RATE_MODES, Decision, Mode
from tidegate.model.errors import DamagedDocumentError, TidegateError, UserError
from tidegate.model.view import DECISIONS_SHOWN


class NotLeadingError(TidegateError):
    """The lease may have run out: nothing more may be carried out."""


class Acting:
    """Belongs to one thread, but for ``lease.may_act`` and ``lease.leader``."""

    def __init__(self, urls: Sequence[str], name: str, lease_s: float) -> None:
        # An answer that takes longer than this would come when the lease has no margin left.
        self._bus = Bus(urls, timeout_s=lease_s / 3, name=name)
        self._name = name
        self._executors = Executors(self._bus)
        self._stored: LoopState | None = None
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

    def write_mode(self, mode: Mode) -> None:
        write_mode(self._bus, mode)

    def state(self) -> LoopState:
        """What the leader, or the last one, knew; the beginning where that cannot be read."""
        with contextlib.suppress(DamagedDocumentError):
            return self._bus.get(LOOP_STATE) or LoopState()
        return LoopState()

    def decisions(self) -> tuple[Decision, ...]:
        """The newest of the audit log, read again only when there are new ones."""
        upto = self.audit.last_sequence()
        if upto != self._decisions_upto:
            self._decisions = self.audit.last(DECISIONS_SHOWN)
            self._decisions_upto = upto
        return self._decisions

    # -- acting

    def carry_out(self, proposals: Sequence[Proposal], state: LoopState) -> list[Decision]:
        """Execute, write down, and keep the state for the next leader; the decisions that were written down."""
        written = []
        for proposal in proposals:
            for action in proposal.plan.actions:
                if proposal.acts:
                    self._check_lease()
                    self._executors.carry_out(action)
                if proposal.recorded:
                    decision = Decision(
                        at_s=time.time(),
                        controller=self._name,
                        phase=proposal.phase,
                        sentence=proposal.sentence,
                        acted=proposal.acts,
                        action=action,
                    )
                    self._check_lease()
                    self.audit.append(decision)
                    written.append(decision)
        if state != self._stored:
            self._check_lease()
            self._bus.put(LOOP_STATE, state)
            self._stored = state
        return written

    def _check_lease(self) -> None:
        if not self.lease.may_act:
            raise NotLeadingError(f"{self._name} does not lead at the moment: another controller acts.")


def write_mode(bus: Bus, mode: Mode) -> None:
    if mode.send_rate not in SEND_RATE_MODES:
        raise UserError(f"There is no mode {mode.send_rate!r}: choose one of {', '.join(SEND_RATE_MODES)}.")
    bus.put(MODE, mode)
