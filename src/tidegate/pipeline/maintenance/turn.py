"""Whose turn it is to work on the tables: of all maintainers and operators one at a time.

The turn is a lease on the control bus and saves two from doing the same work. What keeps the tables whole is the fence
in their own log (``table.py``), which also holds against one whose turn has passed without its knowing.
"""

import time
from collections.abc import Callable

from tidegate.bus.client import Bus
from tidegate.bus.documents import MAINTAINER
from tidegate.bus.leases import Lease
from tidegate.model.errors import BrokerUnavailableError, FencedError


class Turn:
    """Belongs to the thread of its bus. Call ``keep`` often while working."""

    def __init__(self, bus: Bus, name: str, lease_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._lease = Lease(bus, MAINTAINER, name, lease_s)
        self._name, self._lease_s, self._clock = name, lease_s, clock
        self._renewed_s = 0.0

    @property
    def holder(self) -> str | None:
        """Who had it when we asked last."""
        return self._lease.holder

    def take(self) -> bool:
        self._renewed_s = self._clock()
        return self._lease.keep()

    def keep(self) -> None:
        """Renew it when that is due. A bus that does not answer is no loss: the fence holds without it."""
        if self._clock() - self._renewed_s < self._lease_s / 4:
            return
        try:
            is_ours = self.take()
        except BrokerUnavailableError:
            return
        if not is_ours:
            raise FencedError(
                f"The tables are {self.holder}'s to look after now, so {self._name} stops: it was silent for too long.",
                where=MAINTAINER.key,
                expected=self._name,
                found=self.holder,
            )

    def end(self) -> None:
        self._lease.end()
