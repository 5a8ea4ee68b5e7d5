"""Messages that a reader did not get though the log goes on behind them: in doubt, and then missing for certain. No IO.

A query that did not get a message ends, and the next one is told which it was. Its slice is read up to that message,
and all others go on. Then every broker is asked for it again and again. One that is there after all is read. One that
nobody has for a while is missing, and reading goes on at the next that there is. While there is none behind it, nothing
waits for it either, so nothing is passed over.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tidegate.model.errors import BrokerUnavailableError
from tidegate.model.positions import incarnation_of, position, sequence_of

# A broker that has just started may not have all of it yet, and one without open files to spare says that it has none.
MISSING_S_MIN = 15.0
ASK_S = 0.5
# A broker that does not answer may have the message. It is asked seldom: asking takes time that others wait for.
SILENT_S = 10.0

# The lowest sequence of a slice, from the given one on, that any broker has; None where there is none.
NextSequence = Callable[[int, int], int | None]


@dataclass
class _Doubt:
    sequence: int
    found: int | None = None  # the next that there was, whenever that was asked
    since_s: float = 0.0
    ask_at_s: float = 0.0


class Holes:
    """What one query doubts. A doubt that proves wrong, or lies behind the slice by now, is forgotten."""

    def __init__(self, doubted: Mapping[int, int], next_sequence: NextSequence) -> None:
        """``doubted`` is one message of each slice that a reader did not get."""
        self._doubts = {slice_: _Doubt(sequence) for slice_, sequence in doubted.items()}
        self._next_sequence = next_sequence

    def before(self, slice_: int, place: int, end: int) -> int:
        """How far the slice may be read that is at ``place`` and ends at ``end``."""
        doubt = self._doubts.get(slice_)
        if doubt is None or sequence_of(place) >= doubt.sequence:
            return end
        return min(end, position(incarnation_of(place), doubt.sequence - 1))

    def ask(self, slice_: int, place: int, now_s: float) -> int | None:
        """The first message behind a hole that begins right behind ``place``; None while that is not certain."""
        doubt = self._doubts.get(slice_)
        if doubt is None or sequence_of(place) + 1 < doubt.sequence:
            return None
        if sequence_of(place) >= doubt.sequence:
            del self._doubts[slice_]
            return None
        if now_s >= doubt.ask_at_s:
            doubt.ask_at_s = now_s + ASK_S
            try:
                found = self._next_sequence(slice_, doubt.sequence)
            except BrokerUnavailableError:
                doubt.found, doubt.ask_at_s = None, now_s + SILENT_S
                return None
            if found == doubt.sequence:
                del self._doubts[slice_]
                return None
            if found is None or found != doubt.found:
                doubt.found, doubt.since_s = found, now_s
        return doubt.found if doubt.found is not None and now_s - doubt.since_s >= MISSING_S_MIN else None

    def sentences(self) -> list[str]:
        return [
            f"Slice {slice_} has no message {doubt.sequence}, though its log goes on: it is asked for again; if no "
            "broker has it, reading goes on behind it, and 'tidegate recover' names it."
            for slice_, doubt in self._doubts.items()
            if doubt.ask_at_s
        ]
