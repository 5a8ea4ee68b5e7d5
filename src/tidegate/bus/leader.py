"""The leader's lease: several controllers may run, one acts.

The key ``leader`` holds the leader's name and incarnation and runs out by the bus's own clock after two thirds of the
lease, so that the next one leads within a whole one. The leader counts on its own clock, from *before* it asked for a
renewal, and stops acting at half a lease. So when the bus lets the next one in, the last one has been silent for a
while, whatever the two machines' clocks say.
"""

import secrets
import time

import msgspec

from tidegate.bus.knowledge import Knowledge
from tidegate.model.errors import BrokerUnavailableError

LEADER_KEY = "leader"
# Of the lease: when the leader stops acting, and when the bus lets another in (in whole seconds, rounded up).
ACTING_SHARE, HELD_SHARE = 1 / 2, 2 / 3


class Leader(msgspec.Struct, frozen=True):
    name: str
    incarnation: str


class LeaderLease:
    """Belongs to the thread of its knowledge; ``may_act`` and ``leader`` may be read by any."""

    def __init__(self, knowledge: Knowledge, name: str, lease_s: float) -> None:
        self._knowledge = knowledge
        self._own = Leader(name, secrets.token_hex(8))
        self._document = msgspec.json.encode(self._own)
        self._lease_s = lease_s
        self._revision: int | None = None
        self._acts_until_s = 0.0
        self.leader: str | None = None

    @property
    def may_act(self) -> bool:
        return time.monotonic() < self._acts_until_s

    def keep(self) -> bool:
        """Take or renew the lease; whether it is ours now."""
        asked_at_s = time.monotonic()
        if self._revision is not None:
            self._revision = self._put(self._revision)
        if self._revision is None:
            self._acts_until_s = 0.0
            self._revision = self._take()
        if self._revision is not None:
            self._acts_until_s = asked_at_s + ACTING_SHARE * self._lease_s
            self.leader = self._own.name
        return self._revision is not None

    def _take(self) -> int | None:
        held = self._knowledge.get(LEADER_KEY)
        if held is None:
            return self._put(0)
        holder = msgspec.json.decode(held.value, type=Leader)
        if holder == self._own:
            # A renewal was stored although its answer never came.
            return self._put(held.revision)
        self.leader = holder.name
        return None

    def _put(self, revision: int) -> int | None:
        held_s = HELD_SHARE * self._lease_s
        return self._knowledge.put(LEADER_KEY, self._document, revision=revision, lease_s=held_s)

    def end(self) -> None:
        """Let the next one lead at once. Only while the lease is surely ours: the key may be another's by now."""
        if self.may_act and self._revision is not None:
            self._acts_until_s = 0.0
            try:
                self._knowledge.delete(LEADER_KEY)
            except BrokerUnavailableError:
                return  # the lease ends by itself
