"""Work in small steps with rests between them, and a clock that is only trusted while it goes steadily."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

_LOOK_S = 1.0
_STEP_S_MAX = 5.0


class Stopped(Exception):  # noqa: N818 - no error: somebody asked for it
    """Raised between two steps, where the work shall not go on."""


@dataclass
class Pace:
    """Call ``rest`` after each step. ``share`` of the time is worked; 1 never rests.

    ``between`` is called before each rest, and every second of one: it keeps what has to be kept meanwhile, and may
    raise to end the work.
    """

    share: float
    between: Callable[[], None] = lambda: None
    sleep: Callable[[float], object] = time.sleep
    clock: Callable[[], float] = time.monotonic
    hurry: bool = False  # no rests: there is too much to do
    _since_s: float = field(init=False)

    def __post_init__(self) -> None:
        self._since_s = self.clock()

    def begin(self) -> None:
        """What was before this is not counted as work."""
        self._since_s = self.clock()

    def rest(self) -> None:
        left_s = rest_s(self.clock() - self._since_s, self.share)
        self.between()
        while left_s > 0 and not self.hurry:
            self.sleep(min(left_s, _LOOK_S))
            left_s -= _LOOK_S
            self.between()
        self._since_s = self.clock()


def rest_s(worked_s: float, share: float) -> float:
    """How long to rest so that so much of the time is worked."""
    return max(0.0, worked_s) * (1 / share - 1)


def is_due(last_s: float | None, now_s: float, every_s: float) -> bool:
    """Whether something that was last done then, by any process, is to be done now. Clocks may have been set back."""
    return last_s is None or not last_s <= now_s < last_s + every_s


class SteadyClock:
    """Tells when the wall clock was set: ages of files mean nothing until they are counted by the new time."""

    def __init__(self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = time.monotonic) -> None:
        self._wall, self._steady = wall, steady
        self._difference_s = wall() - steady()
        self._stepped_s: float | None = None

    def steady_for(self, seconds: float) -> bool:
        """Whether it has not been set for so long, as far as this process has seen. Ask often."""
        difference_s, now_s = self._wall() - self._steady(), self._steady()
        if abs(difference_s - self._difference_s) > _STEP_S_MAX:
            self._stepped_s = now_s
        self._difference_s = difference_s
        return self._stepped_s is None or now_s - self._stepped_s >= seconds
