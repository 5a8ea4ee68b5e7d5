"""What is wrong at the moment, by its kind: shown until it is over, said once when it begins and once when it ends."""

import math
import time
from collections.abc import Callable
from typing import NamedTuple


class _Problem(NamedTuple):
    sentence: str
    cause: str
    until_s: float


class Problems:
    """One kind does not hide another."""

    def __init__(self, say: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._say, self._clock = say, clock
        self._found: dict[str, _Problem] = {}

    def begin(self, kind: str, sentence: str, *, cause: str = "", lasts_s: float = math.inf) -> None:
        """It is so now, or still: what goes on for the same cause is not said again, whatever its words are now. What
        is over already, and was only worth a word, is shown for ``lasts_s``."""
        before = self._current().get(kind)
        if before is None or before.cause != cause:
            self._say(sentence)
        self._found[kind] = _Problem(sentence, cause, self._clock() + lasts_s)

    def end(self, kind: str) -> None:
        found = self._current().get(kind)
        if found is not None:
            self._say(f"That is over: {found.sentence}")
            del self._found[kind]

    def alarms(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(found.sentence for found in self._current().values()))

    def _current(self) -> dict[str, _Problem]:
        now_s = self._clock()
        self._found = {kind: found for kind, found in self._found.items() if now_s < found.until_s}
        return self._found
