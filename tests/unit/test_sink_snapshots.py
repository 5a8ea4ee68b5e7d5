"""Identities that are written down: what a successor is spared, and what it does where they are lost or wrong."""

import os
import shutil

import pytest
from sinking import Bench, reading

from tidegate.model.errors import FencedError


def test_a_snapshot_spares_the_successor_the_readings_before_it(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.sink._snapshot_s = 0.0
    bench.write(0, 0, [reading(1), reading(2)])
    bench.write(0, 2, [reading(3)])
    bench.restart(2)
    asked: list[int] = []
    rows = bench.sink._tables.readings.rows
    monkeypatch.setattr(
        bench.sink._tables.readings,
        "rows",
        lambda columns, s, after, to: asked.append(after) or rows(columns, s, after, to),
    )
    bench.write(0, 3, [reading(1), reading(4)])
    assert bench.sequences() == [1, 2, 3, 4]
    assert asked
    assert min(asked) > 0


@pytest.mark.parametrize("damage", [b"", b"x" * 10, None])
def test_a_damaged_or_lost_snapshot_makes_the_past_doubtful_and_no_start_fails(
    bench: Bench, damage: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.sink._snapshot_s = 0.0
    bench.write(0, 0, [reading(1), reading(2)])
    bench.write(0, 2, [reading(3)])
    for path in (bench.directory / "identities" / "slice-0").iterdir():
        path.unlink() if damage is None else path.write_bytes(damage)
    bench.restart(2)
    read = bench.sink._tables.readings.rows
    asked: list[int] = []
    monkeypatch.setattr(bench.sink._tables.readings, "rows", lambda *a: asked.append(a[2]) or read(*a))
    bench.write(0, 3, [reading(2), reading(4), reading(9, boot=2)])
    bench.write(0, 6, [reading(3), reading(4), reading(5), reading(9, boot=2)])
    assert bench.sequences() == [1, 2, 3, 4, 5, 9]
    assert asked == []  # nothing is read again from the beginning
    assert "Devices are looked up in the table as they come by" in str(bench.alarms)


def test_a_flipped_bit_in_a_snapshot_is_noticed(bench: Bench) -> None:
    bench.sink._snapshot_s = 0.0
    bench.write(0, 0, [reading(1)])
    for path in (bench.directory / "identities" / "slice-0").iterdir():
        content = bytearray(path.read_bytes())
        content[-3] ^= 1
        path.write_bytes(content)
    bench.restart(2)
    bench.write(0, 1, [reading(1)])
    assert "its checksum is wrong" in str(bench.alarms)
    assert bench.sequences() == [1]


def test_a_new_slice_of_which_nothing_is_written_down_yet_is_read_whole(bench: Bench) -> None:
    bench.write(0, 0, [reading(1), reading(2)])
    bench.restart(2)
    bench.write(0, 2, [reading(2), reading(3)])
    assert bench.sequences() == [1, 2, 3]
    assert bench.alarms == []
    assert bench.sink._seen[0].doubted_until_day == 0


def test_the_alarm_ends_when_identities_are_written_down_again(bench: Bench) -> None:
    bench.write(0, 0, [reading(1)])
    (bench.directory / "identities" / "slice-0").mkdir(parents=True)  # there was something, and it is lost
    bench.restart(2)
    bench.sink._snapshot_s = 0.0
    bench.write(0, 1, [reading(2)])
    bench.write(0, 2, [reading(3)])
    assert "are not written down" in str(bench.alarms[0])
    assert bench.alarms[-1] is None


def test_doubt_outlives_the_next_snapshot(bench: Bench) -> None:
    bench.write(0, 0, [reading(1), reading(1, boot=2)])
    (bench.directory / "identities" / "slice-0").mkdir(parents=True)
    bench.restart(2)
    bench.sink._snapshot_s = 0.0
    bench.write(0, 2, [reading(2)])
    bench.write(0, 3, [reading(3)])
    bench.restart(3)
    bench.write(0, 4, [reading(1, boot=2)])
    assert bench.table("readings").num_rows == 4


def test_a_snapshot_of_what_a_table_has_lost_is_not_used_when_it_comes_to_that_offset_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate.pipeline.tables.sink._SNAPSHOT_SHARE", 0)
    bench.sink._snapshot_s = 0.0
    bench.write(0, 0, [reading(1)])
    before = shutil.copytree(bench.directory, bench.directory.parent / "before")
    for after in range(1, 5):
        bench.write(0, after, [reading(1 + after)])
    for table in ("readings", "means", "rejected"):  # a power failure takes what was committed last, and spares a file
        shutil.rmtree(bench.directory / table)
        shutil.copytree(before / table, bench.directory / table)
    bench.restart(2)
    bench.write(0, 1, [reading(seq) for seq in range(11, 16)])
    bench.restart(3)
    bench.write(0, 6, [reading(seq) for seq in range(11, 17)])
    assert bench.sequences() == [1, 11, 12, 13, 14, 15, 16]


def test_a_driver_that_lost_its_slice_removes_no_snapshot(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.pipeline.tables.sink._SNAPSHOT_SHARE", 0)
    bench.sink._snapshot_s = 0.0
    bench.write(0, 0, [reading(1)])
    zombie, late = bench.restart(2), bench.task(0, 1, [reading(9)])
    bench.restart(3)._snapshot_s = 0.0
    for after in (1, 2, 3):
        bench.write(0, after, [reading(1 + after)])
    written = {path.name for path in (bench.directory / "identities" / "slice-0").iterdir()}
    with pytest.raises(FencedError):
        zombie.commit_results([late])
    assert {path.name for path in (bench.directory / "identities" / "slice-0").iterdir()} == written


def test_what_killed_drivers_left_half_written_is_removed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.pipeline.tables.sink._SNAPSHOT_SHARE", 0)
    bench.sink._snapshot_s = 0.0
    bench.write(0, 0, [reading(1)])
    old, young = (bench.directory / "identities" / "slice-0" / name for name in ("0000.4711", "0000.4712"))
    for path in (old, young):
        path.write_bytes(b"half")
    os.utime(old, (1_000, 1_000))
    bench.write(0, 1, [reading(2)])
    assert young.exists()
    assert not old.exists()
