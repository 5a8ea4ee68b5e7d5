"""A merge that fails: its files are left out, everything else is done, and it is said."""

import time
from pathlib import Path
from typing import Any

import pytest

from maintaining import SLICES, TODAY, Writer, active, care, compacted, data_files, days_ago, stored
from tidegate.model.errors import FencedError, TidegateError
from tidegate.pipeline.maintenance import care as care_module
from tidegate.pipeline.maintenance.planning import DataFile


@pytest.fixture
def failing(directory: Path, monkeypatch: pytest.MonkeyPatch) -> list[BaseException]:
    """Two days; merges of the older one, which has more files, raise what is in the list."""
    writer = Writer(directory)
    for day in (*[days_ago(3)] * 6, *[TODAY] * 5):
        writer.write(day=day)
    merge, raised = care_module.merge, [MemoryError("no more")]

    def fails(how: Any, files: tuple[DataFile, ...]) -> Any:
        if files[0].date != TODAY and raised:
            raise raised[0]
        return merge(how, files)

    monkeypatch.setattr(care_module, "merge", fails)
    return raised


def files_by_day(directory: Path) -> dict[str, int]:
    days = [path.partition("/")[0].removeprefix("date=") for path in active(directory)]
    return {day: days.count(day) for day in days}


@pytest.mark.parametrize("error", [MemoryError("no more"), ValueError("offset overflow"), TidegateError("no room")])
def test_the_other_merges_are_done_and_then_it_is_raised(
    failing: list[BaseException], directory: Path, error: Exception
) -> None:
    failing[0] = error
    before, hands = stored(directory), care(directory)
    assert hands.compact(until_s=time.monotonic()), "a failure takes no time from the others"
    with pytest.raises(TidegateError, match=str(error)):
        hands.compact()
    assert files_by_day(directory) == {str(days_ago(3)): 6, str(TODAY): 1}
    assert stored(directory) == before
    assert len(data_files(directory)) == 6 + 5 + 1


def test_the_next_round_tries_again(failing: list[BaseException], directory: Path) -> None:
    with pytest.raises(TidegateError, match=f"6 files of {days_ago(3)} could not be merged"):
        compacted(directory)
    failing.clear()
    assert care(directory).compact()
    assert files_by_day(directory) == {str(days_ago(3)): 1, str(TODAY): 1}
    assert len(stored(directory)) == 11 * 5 * SLICES


def test_one_that_may_not_work_any_more_stops_at_once(failing: list[BaseException], directory: Path) -> None:
    failing[0] = FencedError("another maintainer has it")
    with pytest.raises(FencedError):
        care(directory).compact()
    assert len(active(directory)) == 11
