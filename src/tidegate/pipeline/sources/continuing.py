"""Whether a slice's log is still the one that the tables have read, and where reading goes on if it is not.

The tables know what the last message they read was. A log without that message, or with another in its place, has lost
messages: a power failure took them, or somebody put other data in its place. All that it holds now is read, from its
first message on; what the tables have of it is recognised by its identity, so nothing is skipped and nothing doubled.

Tables that went on behind messages which are gone know of no message at their place, because there was none. A log that
has one there is another one, too.
"""

from typing import NamedTuple

from tidegate.brokers.port import Span
from tidegate.model.gaps import Gap, Kind
from tidegate.model.positions import incarnation_of, position, sequence_of
from tidegate.pipeline.sources.rows import HOLE
from tidegate.pipeline.tables.tables import Mark


class Verdict(NamedTuple):
    """Where to go on; whether the message before that is there to prove it; the gap, if there is one."""

    start: int
    is_proven: bool
    gap: Gap | None = None


def judge(
    slice_: int, place: int, expected: Mark | None, log: Span, found: Mark | None, *, node: str, now_s: float
) -> Verdict:
    """``found`` is the message that the log has at ``place``; None or ``HOLE`` where it has none there."""
    sequence, incarnation = sequence_of(place), incarnation_of(place)
    first = max(1, log.first)
    kind = _broken(sequence, expected, Span(first, log.last), found)
    if kind is None:
        return Verdict(place, is_proven=found not in (None, HOLE))
    if kind != "deleted":
        incarnation += 1
    gap = Gap(
        slice=slice_,
        kind=kind,
        noticed_at_s=now_s,
        node=node,
        incarnation=incarnation,
        expected_sequence=sequence,
        expected_stamp_s=expected.stamp_us / 1e6 if expected else None,
        found_first=first,
        found_last=log.last,
        found_stamp_s=found.stamp_us / 1e6 if found else None,
    )
    return Verdict(position(incarnation, first - 1), is_proven=False, gap=gap)


def _broken(sequence: int, expected: Mark | None, log: Span, found: Mark | None) -> Kind | None:
    if log.last < sequence:
        return "shorter"
    if found is None:
        # A log that is purged up to the very place has lost nothing.
        return "deleted" if log.first > sequence + 1 else None
    return "different" if found != (expected or HOLE) else None


def behind_hole(slice_: int, place: int, found: int, log: Span, *, node: str, now_s: float) -> Verdict:
    """The messages behind ``place`` are missing for certain, and ``found`` is the first that is there."""
    incarnation, sequence = incarnation_of(place), sequence_of(place)
    gap = Gap(
        slice=slice_,
        kind="missing",
        noticed_at_s=now_s,
        node=node,
        incarnation=incarnation,
        expected_sequence=sequence,
        found_first=found,
        found_last=log.last,
        missing=found - sequence - 1,
    )
    return Verdict(position(incarnation, found - 1), is_proven=False, gap=gap)
