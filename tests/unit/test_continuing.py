"""Whether a log is still the one that the tables have read: every way in which it may not be."""

import pytest

from tidegate.brokers.port import Span
from tidegate.model.gaps import Gap, Gaps
from tidegate.model.positions import incarnation_of, position, sequence_of
from tidegate.pipeline.sources.continuing import Verdict, behind_hole, judge
from tidegate.pipeline.sources.rows import HOLE
from tidegate.pipeline.tables.tables import Mark

READ = Mark(10_000_000, 77)
OTHER = Mark(20_000_000, 78)


def judged(place: int, log: Span, found: Mark | None, expected: Mark | None = READ) -> Verdict:
    return judge(3, place, expected, log, found, node="node-1", now_s=50.0)


def test_a_log_that_has_the_message_goes_on_and_is_proven() -> None:
    assert judged(10, Span(10, 12), READ) == Verdict(10, is_proven=True)


def test_an_untouched_slice_begins_without_proof() -> None:
    assert judged(0, Span(0, 0), None, expected=None) == Verdict(0, is_proven=False)
    assert judged(0, Span(1, 7), None, expected=None) == Verdict(0, is_proven=False)


def test_a_log_that_is_purged_up_to_the_very_place_has_lost_nothing() -> None:
    assert judged(10, Span(11, 12), None) == Verdict(10, is_proven=False)
    assert judged(10, Span(11, 10), None) == Verdict(10, is_proven=False)


@pytest.mark.parametrize(
    ("log", "found", "kind", "start"),
    [
        (Span(3, 5), None, "shorter", position(1, 2)),
        (Span(0, 0), None, "shorter", position(1, 0)),  # the store is lost altogether
        (Span(3, 13), OTHER, "different", position(1, 2)),
        (Span(3, 10), Mark(0, 0), "different", position(1, 2)),  # deleted from the middle
        (Span(14, 20), None, "deleted", 13),
    ],
)
def test_a_log_that_is_another_one_is_read_from_its_beginning(
    log: Span, found: Mark | None, kind: str, start: int
) -> None:
    verdict = judged(10, log, found)
    assert verdict[:2] == (start, False)
    gap = verdict.gap
    assert gap is not None
    assert (gap.slice, gap.kind, gap.expected_sequence, gap.expected_stamp_s) == (3, kind, 10, 10.0)
    assert (gap.found_first, gap.found_last, gap.incarnation) == (max(1, log.first), log.last, incarnation_of(start))


def test_a_second_loss_opens_a_third_incarnation() -> None:
    verdict = judged(position(1, 8), Span(1, 4), None)
    assert verdict.start == position(2, 0) > position(1, 8)


def test_tables_that_went_on_where_no_message_was_find_none_there() -> None:
    assert judged(10, Span(4, 12), HOLE, expected=None) == Verdict(10, is_proven=False)
    assert judged(10, Span(11, 12), None, expected=None) == Verdict(10, is_proven=False)


def test_a_log_with_a_message_where_none_was_is_another_one() -> None:
    """Made anew, and with more messages by now than the place that the tables went on from behind a gap."""
    verdict = judged(49, Span(1, 60), OTHER, expected=None)
    assert (verdict.start, verdict.gap and verdict.gap.kind) == (position(1, 0), "different")


def test_behind_missing_messages_it_goes_on_in_the_same_incarnation() -> None:
    verdict = behind_hole(3, position(2, 74), 78, Span(1, 100), node="node-1", now_s=50.0)
    assert verdict[:2] == (position(2, 77), False)
    gap = verdict.gap
    assert gap is not None
    assert (gap.kind, gap.incarnation, gap.expected_sequence, gap.found_first, gap.missing) == ("missing", 2, 74, 78, 3)
    assert "Slice 3: between 74 and 78 the log lacks 3 message(s)" in gap.sentence


def test_many_holes_of_one_slice_are_one_gap() -> None:
    gaps = Gaps()
    for place, found in ((74, 76), (74, 76), (80, 84), (90, 92)):
        gap = behind_hole(3, place, found, Span(1, 100), node="node-1", now_s=float(place)).gap
        assert gap is not None
        gaps = gaps.with_(gap)
    (gap,) = gaps.open
    assert (gap.expected_sequence, gap.found_first, gap.missing, gap.noticed_at_s) == (74, 92, 5, 74.0)


def test_positions_are_an_incarnation_and_a_sequence() -> None:
    assert position(0, 7) == 7
    assert (incarnation_of(position(5, 7)), sequence_of(position(5, 7))) == (5, 7)


def test_a_gap_is_noted_once_and_closed_by_slice() -> None:
    def gap(slice_: int, incarnation: int) -> Gap:
        return Gap(
            slice=slice_, kind="shorter", noticed_at_s=1.0, node="n", incarnation=incarnation, expected_sequence=1
        )

    gaps = Gaps().with_(gap(1, 1)).with_(gap(2, 1)).with_(gap(1, 1)).with_(gap(1, 2))
    assert [(one.slice, one.incarnation) for one in gaps.open] == [(2, 1), (1, 1), (1, 2)]
    assert [one.slice for one in gaps.without(frozenset({1})).open] == [2]
    for number in range(1000):
        gaps = gaps.with_(gap(number, 1))
    assert len(gaps.open) == 256


@pytest.mark.parametrize(
    ("log", "found", "words"),
    [
        (Span(3, 5), None, ["Slice 3", "up to 10", "1970-01-01 00:00:10 UTC", "ends at 5", "read anew from 3"]),
        (Span(3, 13), OTHER, ["another message there (stored 1970-01-01 00:00:20 UTC)", "ends at 13"]),
        (Span(14, 20), None, ["begins at 14", "3 messages between were deleted"]),
    ],
)
def test_a_gap_names_slice_expected_and_found(log: Span, found: Mark | None, words: list[str]) -> None:
    gap = judged(10, log, found).gap
    assert gap is not None
    assert [word for word in words if word not in gap.sentence] == []
