"""Where a slice stands in the tables: which incarnation of its log, and how far in that.

A log that came back from a power failure shorter than it was counts its messages anew from where it ended. What the
tables have under the old numbers stays there, so a position is both in one integer that only grows: the incarnation in
front, the log's own sequence behind it. The first incarnation is 0: its positions *are* the log's sequences.
"""

from tidegate.model.errors import TidegateError

_SEQUENCE_BITS = 44  # at 10,000 messages per second and slice, 55 years of them
SEQUENCE_MAX = (1 << _SEQUENCE_BITS) - 1


def position(incarnation: int, sequence: int) -> int:
    """Raises where the sequence would run over into the incarnation: that place would be another message's."""
    if not 0 <= sequence <= SEQUENCE_MAX:
        raise TidegateError(
            f"Message {sequence} of a slice has no position in the tables, which count from 0 to {SEQUENCE_MAX}: start "
            "with a new log and new tables.",
            where="position",
            expected=SEQUENCE_MAX,
            found=sequence,
        )
    return incarnation << _SEQUENCE_BITS | sequence


def incarnation_of(place: int) -> int:
    return place >> _SEQUENCE_BITS


def sequence_of(place: int) -> int:
    return place & SEQUENCE_MAX
