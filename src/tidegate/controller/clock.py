"""The loop's own time: seconds that never go back, near Unix time where nobody's clock was stepped.

Events, policies and leases compare moments; a clock that is set back would stop them until it has caught up, and so
would a successor whose clock is behind. One whose clock is ahead would take for late what has only begun. So the time
that passes is that of the monotonic clock, and whoever takes over goes on from where the last leader was.
"""

import time
from collections.abc import Callable

LATER_S = 0.05
EARLIER_S = 5.0  # how late the bus may answer, and the last leader may have written its time


class LoopClock:
    def __init__(self, monotonic: Callable[[], float] = time.monotonic, unix: Callable[[], float] = time.time) -> None:
        self._monotonic, self._unix = monotonic, unix
        self._ahead_s = unix() - monotonic()

    def now_s(self) -> float:
        return self._monotonic() + self._ahead_s

    def not_before(self, at_s: float) -> bool:
        """Somebody's time was later: it is so now. Whether it was by so much that what was measured before and after
        does not go together."""
        later_s = at_s - self.now_s()
        self._ahead_s += max(0.0, later_s)
        return later_s > LATER_S

    def set_back(self, ahead_s: float) -> bool:
        """This time is so far ahead of the last leader's: whether it was worth setting back."""
        if ahead_s <= EARLIER_S:
            return False
        self._ahead_s -= ahead_s
        return True

    def from_unix(self, unix_s: float) -> float:
        """A moment that somebody's wall clock said, as this time: as long ago as it is by the wall clock."""
        return self.now_s() - (self._unix() - unix_s)
