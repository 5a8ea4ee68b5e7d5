"""Errors of the processes that Spark starts, left as values where the node finds them."""

import errno
from pathlib import Path

import pytest

from tidegate.machine.evidence import ERRORS_MAX, Evidence, found_in, left_in
from tidegate.model.errors import SequenceGapError


def raised(directory: Path, error: Exception) -> None:
    with pytest.raises(type(error)), left_in(directory):
        raise error


def test_an_error_of_our_own_is_found_with_what_it_carries(tmp_path: Path) -> None:
    raised(tmp_path, SequenceGapError("Slice 3 has no message 7.", where="SLICE_3", expected=7, found=9))
    assert found_in(tmp_path) == Evidence(
        sentence="Slice 3 has no message 7.", where="SLICE_3", expected="7", found="9"
    )


def test_an_error_of_the_system_is_found_by_its_number(tmp_path: Path) -> None:
    raised(tmp_path, OSError(errno.ENOSPC, "No space left on device", "/tables/a"))
    found = found_in(tmp_path)
    assert found is not None
    assert (found.errno, found.where) == (errno.ENOSPC, "/tables/a")


def test_any_other_error_leaves_nothing(tmp_path: Path) -> None:
    raised(tmp_path, KeyError("x"))
    assert found_in(tmp_path) is None


def test_the_first_error_counts(tmp_path: Path) -> None:
    """Processes fail one after the other, and the later ones because of the first."""
    raised(tmp_path, SequenceGapError("first"))
    raised(tmp_path, SequenceGapError("second"))
    found = found_in(tmp_path)
    assert found is not None
    assert found.sentence == "first"


def test_a_place_that_cannot_be_written_hides_no_error(tmp_path: Path) -> None:
    with pytest.raises(SequenceGapError, match="the gap"), left_in(tmp_path / "gone"):
        raise SequenceGapError("the gap")
    with pytest.raises(SequenceGapError, match="the gap"), left_in(None):
        raise SequenceGapError("the gap")


def test_half_an_error_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "1.error").write_bytes(b'{"sentence": "half')
    assert found_in(tmp_path) is None
    raised(tmp_path, SequenceGapError("whole"))
    found = found_in(tmp_path)
    assert found is not None
    assert found.sentence == "whole"


def test_the_first_errors_stay_and_no_more_are_left_than_somebody_reads(tmp_path: Path) -> None:
    for number in range(3 * ERRORS_MAX):
        raised(tmp_path, SequenceGapError(f"gap {number}"))
    assert len(list(tmp_path.iterdir())) == ERRORS_MAX
    found = found_in(tmp_path)
    assert found is not None
    assert found.sentence == "gap 0"
