"""However few entries are remembered of a slice, the table gets what it would get with unlimited memory."""

import tempfile
import time
from pathlib import Path
from unittest.mock import patch

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from one_slice import DAY_S, Identity, OneSlice
from tidegate.pipeline.tables import snapshots
from tidegate.pipeline.tables.identities import KEY, KnownIdentities, Runs
from tidegate.pipeline.tables.snapshots import load_known, save_known
from tidegate.pipeline.tables.tables import Tables

IDENTITIES = st.tuples(st.sampled_from("abc"), st.integers(1, 3), st.integers(1, 6))
# A batch, after how many days it comes, and whether the node starts anew before it.
STEPS = st.tuples(st.lists(IDENTITIES, min_size=1, max_size=6), st.integers(0, 2), st.booleans())


@settings(max_examples=25, deadline=None)
@given(st.lists(STEPS, min_size=2, max_size=7), st.integers(0, 3))
def test_a_bound_changes_nothing_that_is_stored(steps: list[tuple[list[Identity], int, bool]], entries: int) -> None:
    with tempfile.TemporaryDirectory() as directory, patch.object(snapshots, "ENTRIES_MAX", entries):
        slice_ = OneSlice(Path(directory), time.time() - 20 * DAY_S, snapshot_s=0.0)
        for identities, days, starts in steps:
            slice_.arrived_s += days * DAY_S
            if starts:
                slice_.start()
            slice_.write(identities)
            assert snapshots._mapped(newest(Path(directory))).shape[1] <= entries
        assert slice_.stored() == sorted({one for identities, _, _ in steps for one in identities})


def newest(directory: Path) -> Path:
    return max((directory / "identities" / "slice-0").glob("*.known"))


def runs(keys: np.ndarray, low: int, high: int) -> Runs:
    return Runs(keys.astype(np.uint64), np.full(len(keys), low, np.int64), np.full(len(keys), high, np.int64))


def test_made_up_boots_do_not_drive_out_devices_that_speak_for_long(tmp_path: Path) -> None:
    known, tables = KnownIdentities(), Tables(tmp_path)
    honest, made_up = np.arange(1, 101), np.arange(1_000, 11_000)
    known.add(runs(honest, 1, 500), 100)
    known.add(runs(made_up, 1, 2), 101)
    with patch.object(snapshots, "ENTRIES_MAX", 1_000):
        assert save_known(tables, 0, 1, known, 70, fsync=False, horizon_days=30) == 9_100
    entries = known.merged(0)
    assert entries.shape[1] == 1_000
    assert np.isin(honest, entries[KEY]).all()
    assert known.add(runs(honest, 501, 501), 102) == [], "they are new for certain, as before"
    assert known.absent(np.array([5_000_000], np.uint64), 102).size, "of others the table is asked"


def test_the_oldest_go_and_are_doubted_for_as_long_as_they_would_have_been_kept(tmp_path: Path) -> None:
    known, tables = KnownIdentities(), Tables(tmp_path)
    for day in (100, 101, 102):
        known.add(runs(np.arange(day * 10, day * 10 + 10), 1, 50), day)
    with patch.object(snapshots, "ENTRIES_MAX", 15):
        save_known(tables, 0, 1, known, 70, fsync=False, horizon_days=30)
    kept = known.merged(0)[KEY]
    assert (kept >= 1_010).all()
    assert len(kept) == 15
    for remembers in (known, load_known(tables, 0, 1, 110, 30).known):
        assert remembers.absent(np.array([1_000], np.uint64), 131).size, "an entry of day 101 is kept through day 131"
        assert not remembers.absent(np.array([1_000], np.uint64), 132).size


def test_the_alarm_says_that_there_are_too_many(tmp_path: Path) -> None:
    with patch.object(snapshots, "ENTRIES_MAX", 2):
        slice_ = OneSlice(tmp_path, time.time(), snapshot_s=0.0)
        slice_.write([("a", boot, 1) for boot in range(5)])
    assert "Slice 0 has 3 more pairs of device and boot than the 2" in str(slice_.alarms[-1])
    slice_.write([("b", 1, 1)])
    assert slice_.alarms[-1] is None
