"""What ``bench endurance`` builds and computes, in small: the tables it ages, and the slopes it tells."""

import math
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tidegate.report.progress import Progress
from tidegate_bench.endurance import aged, known, takeover
from tidegate_bench.endurance.batches import SLICES, Driver, names
from tidegate_bench.endurance.live import per_hour
from tidegate_bench.endurance.run import _checks


@pytest.fixture
def progress() -> Progress:
    return Progress("test")


def rows(directory: Path) -> int:
    return int(DeltaTable(str(directory / "readings")).to_pyarrow_dataset().count_rows())


def test_a_driver_commits_what_it_is_given_and_a_successor_goes_on(tmp_path: Path) -> None:
    first = Driver(tmp_path, 1)
    first.commit(first.task(names(3), 0))
    first.close()
    second = Driver(tmp_path, 2, [5])
    assert second.offsets == {5: 3}
    second.commit(second.task(names(3, slices=[5]), 1))
    second.close()
    assert rows(tmp_path) == 3 * SLICES + 3


def test_an_aged_table_has_as_many_real_entries_as_it_says(
    tmp_path: Path, progress: Progress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aged, "ENTRIES", 40)
    monkeypatch.setattr(aged, "LINKS_MAX", 15)
    expected = aged._grow(tmp_path, progress)
    assert rows(tmp_path) == expected == 41 * SLICES * aged.DEVICES_PER_SLICE
    assert len(list((tmp_path / "readings" / "_delta_log").glob("*.json"))) >= 41


def test_a_slice_of_the_large_table_is_taken_over(progress: Progress, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"ROWS": 6_400, "DEVICES_PER_SLICE": 50, "FILE_ROWS": 150, "PAIRS": 2}.items():
        monkeypatch.setattr(takeover, name, value)
    found = takeover.measure(progress)
    assert (found["rows"], found["files"]) == (6_400, 2 * SLICES * takeover.DATES)
    assert found["takeover_aged_ratio"] > 0


def test_devices_cost_memory_and_cold_ones_a_batch(progress: Progress, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"DEVICES": 200_000, "BATCH_DEVICES": 80, "PAIRS": 2}.items():
        monkeypatch.setattr(known, name, value)
    found = known.measure(progress)
    assert found["devices"] == 200_000
    assert 0 < found["cold_batch_ratio_min"] <= found["cold_batch_ratio"] <= found["cold_batch_ratio_max"]


def test_a_slope_is_that_of_the_line_and_its_interval_that_of_the_noise() -> None:
    hours = [number / 10 for number in range(50)]
    assert per_hour([hour * 3600 for hour in hours], [5 + 2 * hour for hour in hours]) == pytest.approx((2.0, 0.0))
    noisy = [5 + 2 * hour + (-1) ** number for number, hour in enumerate(hours)]
    slope, half_width = per_hour([hour * 3600 for hour in hours], noisy)
    assert abs(slope - 2.0) < half_width < 0.3
    assert math.isnan(per_hour([0.0, 1.0], [1.0, 2.0])[0])


def test_each_bar_can_be_missed() -> None:
    good = [
        {
            "part": "commits",
            "commits": 20_000,
            "rows": 5,
            "rows_expected": 5,
            "commit_growth": 1.2,
            "log_entries_max": 10,
            "log_entries_bound": 10,
            "active_files_max": 10,
            "active_files_bound": 10,
        },
        {"part": "aged", "catch_up_s": 1.0, "aged_vs_fresh": 1.5},
        {"part": "takeover", "takeover_aged_ratio": 1.5},
        {"part": "live", "maintenance_runs": 10, "maintenance_delay_ratio": 1.5},
        {"part": "identities", "identity_bytes_per_device": 64, "cold_batch_ratio": 3},
    ]
    assert all(check.holds for check in _checks(good))
    for place, row in enumerate(good):
        for name, value in row.items():
            if name in ("part", "catch_up_s") or name.endswith("_bound"):
                continue
            worse = value - 1 if name in ("commits", "maintenance_runs", "rows", "rows_expected") else value + 1
            changed = [*good[:place], {**row, name: worse}, *good[place + 1 :]]
            assert not all(check.holds for check in _checks(changed)), name
