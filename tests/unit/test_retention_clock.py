"""Days are not dropped by a clock that the tables do not bear out."""

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from maintaining import TODAY, Writer, care, days_ago, stored
from tidegate.pipeline.maintenance.care import Care, UntrustedClockError
from tidegate.pipeline.maintenance.planning import clock_problem, vouched

BEGIN = date(2026, 1, 1)


def days(first: int, count: int) -> list[date]:
    return [BEGIN + timedelta(days=first + place) for place in range(count)]


@pytest.mark.parametrize(
    ("dates", "newest"),
    [
        pytest.param([], None, id="no table yet"),
        pytest.param(days(0, 100), 99, id="data every day"),
        pytest.param([*days(0, 50), *days(75, 1)], 75, id="a pause of some weeks"),
        pytest.param([*days(0, 50), *days(5_000, 1)], 49, id="one day that is years ahead"),
        pytest.param([*days(0, 50), *days(5_000, 6)], 49, id="some days that are years ahead"),
        pytest.param([*days(0, 50), *days(400, 7)], 406, id="data on a week's days after a long pause"),
        pytest.param([*days(0, 2), *days(5_000, 3)], 1, id="a young table"),
        pytest.param([*days(-20_000, 1), *days(0, 9)], 8, id="a clock that began in 1970"),
    ],
)
def test_the_newest_day_that_tables_vouch_for(dates: list[date], newest: int | None) -> None:
    assert vouched(dates) == (None if newest is None else BEGIN + timedelta(days=newest))


@pytest.mark.parametrize(("ahead", "is_wrong"), [(-500, False), (0, False), (30, False), (31, True), (9_000, True)])
def test_how_far_a_clock_may_be_ahead(ahead: int, is_wrong: bool) -> None:
    dates = days(0, 40)
    assert (clock_problem(dates[-1] + timedelta(days=ahead), dates) is not None) == is_wrong


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    writer = Writer(tmp_path / "tables")
    for days_back in range(50, -1, -10):
        writer.write(day=days_ago(days_back))
    return tmp_path / "tables"


def at(directory: Path, day: date) -> Care:
    hands = care(directory, readings_days=35)
    hands.now = lambda: datetime(day.year, day.month, day.day, 12, tzinfo=UTC).timestamp()
    return hands


def test_a_clock_that_is_years_ahead_drops_nothing(directory: Path) -> None:
    hands, before = at(directory, TODAY + timedelta(days=4_000)), stored(directory)
    with pytest.raises(
        UntrustedClockError, match=rf"the newest day .* is {TODAY}: set the clock right, or .*--trust-c"
    ):
        hands.check_clock()
    writer = Writer(directory, epoch=2)
    writer.write(day=TODAY + timedelta(days=4_000))  # the whole machine's clock is wrong
    with pytest.raises(UntrustedClockError):
        hands.check_clock()
    assert len(stored(directory)) == len(before) + 20


def test_a_clock_that_is_right_drops_what_is_too_old(directory: Path) -> None:
    hands = at(directory, TODAY)
    hands.check_clock()
    hands.retain()
    assert hands.done.dates_dropped == 2


def test_a_table_that_nobody_wrote_to_for_months_goes_on_as_long_as_another_one_grows(directory: Path) -> None:
    later = TODAY + timedelta(days=90)
    with pytest.raises(UntrustedClockError):
        at(directory, later).check_clock()
    for days_on in range(25, 100, 25):
        (directory / "means" / f"date={TODAY + timedelta(days=days_on)}").mkdir(parents=True)
    at(directory, later).check_clock()


def test_nothing_is_said_where_nothing_would_be_dropped(directory: Path) -> None:
    hands = care(directory)
    hands.now = at(directory, TODAY + timedelta(days=4_000)).now
    assert hands.clock_problem() is None, "these readings are kept for ever"
