"""How long each of many waits took, and what those have waited so far who wait still."""

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence

import msgspec

# Who waits for longer than this when a sample is taken counts with what it has waited: it may wait for ever.
OVERDUE_S = 0.5


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """What others met in some seconds: times to PUBACK, to CONNACK and (of those that come by HTTP) to 204, and how
    many were closed, refused or not taken on."""

    delays_s: tuple[float, ...] = ()
    connects_s: tuple[float, ...] = ()
    http_s: tuple[float, ...] = ()
    lost: int = 0


def together(samples: Sequence[Sample]) -> Sample:
    return Sample(
        delays_s=tuple(delay for one in samples for delay in one.delays_s),
        connects_s=tuple(delay for one in samples for delay in one.connects_s),
        http_s=tuple(delay for one in samples for delay in one.http_s),
        lost=sum(one.lost for one in samples),
    )


class Waits:
    """Of clients that begin a wait about every ``every_s``.

    Who waits for long begins no other wait meanwhile, so that the worst seconds would count least. The waits that it
    would have begun, each a little shorter than the one before it, count as well.
    """

    def __init__(self, every_s: float, clock: Callable[[], float] = time.perf_counter) -> None:
        self._every_s, self._clock = every_s, clock
        self._took_s: list[float] = []
        self._since_s: dict[object, float] = {}

    @contextlib.contextmanager
    def timed(self, who: object) -> Iterator[None]:
        """A wait that fails is none: it is for others to count."""
        started_s = self._since_s[who] = self._clock()
        try:
            yield
            self._took_s.append(self._clock() - started_s)
        finally:
            del self._since_s[who]

    def taken(self) -> tuple[float, ...]:
        """Since the last time."""
        now_s, took_s = self._clock(), tuple(self._took_s)
        self._took_s.clear()
        took_s += tuple(now_s - since for since in self._since_s.values() if now_s - since > OVERDUE_S)
        return tuple(wait_s for one in took_s for wait_s in with_unbegun(one, self._every_s))


def with_unbegun(took_s: float, every_s: float) -> Iterator[float]:
    """The wait itself, and those that would have been begun in it."""
    while took_s > 0:
        yield took_s
        took_s -= every_s
