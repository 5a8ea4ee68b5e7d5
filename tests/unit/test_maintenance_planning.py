"""Which files are merged, which days are dropped, what of a log may go: decisions as tables."""

from datetime import date

import pytest

from tidegate.pipeline.maintenance.log import first_kept
from tidegate.pipeline.maintenance.pacing import Pace, SteadyClock, rest_s
from tidegate.pipeline.maintenance.planning import (
    FILES_MAX,
    DataFile,
    Limits,
    Merge,
    expired,
    next_merges,
    rows_per_file,
)
from tidegate.pipeline.tables.checkpoints import STEP, stages

TODAY = date(2026, 11, 17)
YESTERDAY = date(2026, 11, 16)
NOW_S = 1_000_000.0
LIMITS = Limits(bytes_min=1_000, bytes_max=10_000, files_min=4)


def files(*sizes: int, day: date = TODAY, low: int = 0, high: int = 7, modified_s: float = 0.0) -> list[DataFile]:
    return [
        DataFile(f"{day}-{low}-{high}-{number}-{size}", day, size, size, low, high, modified_s)
        for number, size in enumerate(sizes)
    ]


def sizes(merges: list[Merge]) -> list[int]:
    assert len(merges) <= 1
    return sorted(file.size for merge in merges for file in merge)


@pytest.mark.parametrize(
    ("those", "merged"),
    [
        pytest.param([], [], id="nothing there, nothing to do"),
        pytest.param(files(10, 11, 12), [], id="too few of one size"),
        pytest.param(files(10, 11, 12, 13), [10, 11, 12, 13], id="enough of one size"),
        pytest.param(files(10, 90, 300, 900), [], id="enough, but of all sizes"),
        pytest.param(files(2, 10, 90, 91, 92, 93), [2, 10, 90, 91, 92, 93], id="what is smaller goes along"),
        pytest.param(files(3000, 3100, 3200), [], id="large ones of one slice, too few"),
        pytest.param(
            files(2000, 2100, 2200, 2300), [2000, 2100, 2200, 2300], id="large ones that hold the same slices"
        ),
        pytest.param(files(4000, 4100, 4200, 4300), [], id="so large that too few fit into one file"),
        pytest.param(
            files(2000, low=0, high=1) + files(2100, low=2, high=3) + files(2200, 2300, low=4, high=7),
            [],
            id="large ones that hold other slices stay apart",
        ),
        pytest.param(files(10_000, 20_000, 30_000, 40_000), [], id="the largest are left alone"),
        pytest.param(
            files(10, 500, day=YESTERDAY), [10, 500], id="of a closed day two are enough, whatever their size"
        ),
        pytest.param(files(500, day=YESTERDAY), [], id="one file a day is in order"),
        pytest.param(files(10, 500, day=YESTERDAY, modified_s=NOW_S - 60), [], id="a closed day that is still written"),
        pytest.param(files(10, day=YESTERDAY) + files(11), [], id="days are never merged"),
        pytest.param(files(3000, 4000, day=YESTERDAY, low=3, high=3), [3000, 4000], id="a closed day, one slice"),
        pytest.param(files(6000, 7000, day=YESTERDAY, low=3, high=3), [], id="a closed day, too large together"),
        pytest.param(files(5, 5, 5, 5) + files(6, 6, day=YESTERDAY), [5, 5, 5, 5], id="what makes most files one"),
    ],
)
def test_the_next_merge(those: list[DataFile], merged: list[int]) -> None:
    assert sizes(next_merges(those, NOW_S, TODAY, LIMITS)) == merged


def test_very_many_files_are_merged_in_several_steps_of_one_plan() -> None:
    merges = next_merges(files(*[1] * (2 * FILES_MAX + 3)), NOW_S, TODAY, LIMITS)
    assert [len(merge) for merge in merges] == [FILES_MAX, FILES_MAX], "three are too few for a third"
    merges = next_merges(files(*[999] * 24), NOW_S, TODAY, LIMITS)
    assert [len(merge) for merge in merges] == [10, 10, 4], "ten fit into a file"


def test_rows_per_file_follow_the_size_of_rows() -> None:
    ten_bytes = [DataFile("a", TODAY, 1_000, 100, 0, 0, 0.0)]
    assert rows_per_file(ten_bytes, LIMITS) == (100, 2_000)
    unknown = [DataFile("a", TODAY, 1_000, 0, 0, 0, 0.0)]
    assert rows_per_file(unknown, LIMITS) == (1, 20)


@pytest.mark.parametrize(
    ("days", "dropped"),
    [
        pytest.param(0, [], id="0 keeps everything"),
        pytest.param(1, ["2026-11-01", "2026-11-15"], id="yesterday is one day"),
        pytest.param(2, ["2026-11-01"], id="two days back"),
        pytest.param(16, [], id="all are young enough"),
    ],
)
def test_days_that_are_dropped(days: int, dropped: list[str]) -> None:
    there = [date(2026, 11, 1), date(2026, 11, 15), YESTERDAY, TODAY, date(2026, 11, 18)]
    those = [file for day in there for file in files(1, day=day)]
    assert [str(file.date) for file in expired(those, TODAY, days)] == dropped


@pytest.mark.parametrize(
    ("checkpoints", "aged", "young", "entries_max", "kept"),
    [
        pytest.param([], 90, 95, 1_000, None, id="no checkpoint, nothing goes"),
        pytest.param([20, 40, 60, 80], 55, 95, 1_000, 40, id="from the checkpoint at or below the retention"),
        pytest.param([20, 40, 60, 80], 60, 95, 1_000, 60, id="a checkpoint exactly there"),
        pytest.param([80], 55, 95, 1_000, None, id="the only checkpoint covers what is young"),
        pytest.param([20, 40, 60, 80], 0, 95, 30, 60, id="too many entries: the retention gives way"),
        pytest.param([20, 40, 60, 80], 0, 50, 30, 40, id="what may be read right now never goes"),
        pytest.param([20, 99, 140], 101, 101, 1_000, 99, id="a checkpoint of a version that is not there is none"),
    ],
)
def test_the_version_that_a_log_begins_with(
    checkpoints: list[int], aged: int, young: int, entries_max: int, kept: int | None
) -> None:
    entries = list(range(100))
    assert first_kept(entries, checkpoints, aged=aged, young=young, entries_max=entries_max) == kept


def test_checkpoints_far_behind_come_up_in_stages() -> None:
    assert list(stages(100, 100 + STEP - 1)) == []
    assert list(stages(-1, 2 * STEP)) == [STEP, 2 * STEP]


def test_rests_make_the_share() -> None:
    slept: list[float] = []
    now = [0.0]

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    pace = Pace(0.25, sleep=sleep, clock=lambda: now[0])
    for _ in range(3):
        now[0] += 0.5
        pace.rest()
    assert sum(slept) == pytest.approx(4.5)
    assert max(slept) <= 1.0, "what has to be kept meanwhile is kept every second"
    pace.hurry = True
    now[0] += 5.0
    pace.rest()
    assert sum(slept) == pytest.approx(4.5)
    assert rest_s(3.0, 1.0) == 0.0


def test_a_clock_that_was_set_is_not_trusted_for_a_while() -> None:
    wall, steady = [1_000.0], [0.0]
    clock = SteadyClock(lambda: wall[0], lambda: steady[0])
    assert clock.steady_for(3_600)
    wall[0] += 7_200
    assert not clock.steady_for(3_600)
    wall[0], steady[0] = wall[0] + 3_599, 3_599.0
    assert not clock.steady_for(3_600)
    wall[0], steady[0] = wall[0] + 2, 3_601.0
    assert clock.steady_for(3_600)
