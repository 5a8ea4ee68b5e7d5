"""Which faults need a person, and what an alarm has to say to name them."""

import re
from collections.abc import Iterable

import msgspec

from tidegate_bench.crashes.alarms import Heard
from tidegate_bench.crashes.damage import Outcome
from tidegate_bench.crashes.schedule import Fault

NAMED_S_MAX = 60.0
# A full disk waits for somebody to make room. What a broken store cost is named reading by reading (oracle.unnamed).
PATTERNS = {"disk full": r"disk .*tables.* full"}


class Need(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence like this has to be said within a minute. None: nobody has to do anything."""

    pattern: str | None
    begun_s: float

    def sentence(self, heard: Iterable[Heard]) -> str | None:
        """The one that names it."""
        if self.pattern is None:
            return None
        return next(
            (
                one.sentence
                for one in heard
                if re.search(self.pattern, one.sentence)
                and one.last_s >= self.begun_s
                and one.first_s <= self.begun_s + NAMED_S_MAX
            ),
            None,
        )


def need_of(fault: Fault, outcome: Outcome) -> Need:
    return Need(pattern=PATTERNS.get(fault.kind) if outcome.hit else None, begun_s=outcome.begun_s)
