"""The loop's own time: seconds that never go back, near Unix time where nobody's clock was stepped.

Events, policies and leases compare moments; a clock that is set back would stop them until it has caught up, and so
would a successor whose clock is behind. So the time that passes is that of the monotonic clock, and whoever takes over
goes on from where the last leader was.
"""

import time
from collections.abc import Callable

LATER_S = 0.05


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

    def from_unix(self, unix_s: float) -> float:
        """A moment that somebody's wall clock said, as this time: as long ago as it is by the wall clock."""
        return self.now_s() - (self._unix() - unix_s)
