"""A lease: of several processes one holds a document, until it has not renewed it for a while.

The document holds the holder's name and incarnation and runs out by the bus's own clock. A renewal that was stored
although its answer never came is recognised by the incarnation, and is no loss.
"""

import secrets
import time
from collections.abc import Callable

from tidegate.bus.client import Bus
from tidegate.bus.documents import LEADER, Document, Holder
from tidegate.model.errors import BrokerUnavailableError, DamagedDocumentError

# Of a leader's lease: when it stops acting, and when the bus lets another in (in whole seconds, rounded up).
ACTING_SHARE, HELD_SHARE = 1 / 2, 2 / 3


class Lease:
    """Belongs to the thread of its bus; ``holder`` may be read by any.

    ``name`` is who asks; where there is one such document per name, it is also which one is asked for.
    """

    def __init__(self, bus: Bus, document: Document[Holder], name: str, lease_s: float) -> None:
        self._bus, self._document, self._lease_s = bus, document, lease_s
        self._own = Holder(name, secrets.token_hex(8))
        self._which = name if document.per is not None else ""
        self._revision: int | None = None
        self.holder: str | None = None

    def keep(self) -> bool:
        """Renew the lease or take it; whether it is ours now."""
        return self.renew() or self.take()

    def renew(self) -> bool:
        """Whether it was ours, and still is."""
        if self._revision is not None:
            self._revision = self._put(self._revision)
        return self._revision is not None

    def take(self) -> bool:
        """Take it where nobody has it, or where this very run has it without knowing."""
        try:
            held = self._bus.stored(self._document, self._which)
        except DamagedDocumentError:
            if not self._which:
                raise
            # It bears our name: nobody else would write it again.
            entry = self._bus.entry(self._document, self._which)
            self._revision = self._put(entry.revision if entry is not None else 0)
            return self._is_ours()
        if held is None:
            self._revision = self._put(0)
        elif held.value == self._own:
            self._revision = self._put(held.revision)
        else:
            self.holder = held.value.name
        return self._is_ours()

    def _is_ours(self) -> bool:
        if self._revision is not None:
            self.holder = self._own.name
        return self._revision is not None

    def _put(self, revision: int) -> int | None:
        return self._bus.put(self._document, self._own, self._which, revision=revision, lease_s=self._lease_s)

    def end(self) -> None:
        """Let the next one in at once. A lease that is another's by now stays."""
        revision, self._revision = self._revision, None
        if revision is not None:
            try:
                self._bus.delete(self._document, self._which, revision=revision)
            except BrokerUnavailableError:
                return  # the lease ends by itself


class LeaderLease:
    """Several controllers may run, one acts.

    The bus lets the next one in after two thirds of the lease, so that it leads within a whole one. The leader counts
    on its own clock, from *before* it asked for a renewal, and stops acting at half a lease. So when the bus lets the
    next one in, the last one has been silent for a while, whatever the two machines' clocks say.

    Belongs to the thread of its bus; ``may_act`` and ``leader`` may be read by any.
    """

    def __init__(self, bus: Bus, name: str, lease_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._lease = Lease(bus, LEADER, name, HELD_SHARE * lease_s)
        self._acting_s = ACTING_SHARE * lease_s
        self._clock = clock
        self._acts_until_s = 0.0
        self.term = 0  # how often it was taken: others may have led in between

    @property
    def leader(self) -> str | None:
        return self._lease.holder

    @property
    def may_act(self) -> bool:
        return self._clock() < self._acts_until_s

    def keep(self) -> bool:
        """Take or renew the lease; whether it is ours now."""
        asked_at_s = self._clock()
        if not self._lease.renew():
            self._acts_until_s = 0.0
            if not self._lease.take():
                return False
            self.term += 1
        self._acts_until_s = asked_at_s + self._acting_s
        return True

    def end(self) -> None:
        """Let the next one lead at once, while the lease is surely ours."""
        if self.may_act:
            self._acts_until_s = 0.0
            self._lease.end()
