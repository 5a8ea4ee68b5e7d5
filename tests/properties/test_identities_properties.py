"""The entries of identities against a plain set: what was seen is never taken for new, whatever was forgotten."""

import hashlib
import tracemalloc
from pathlib import Path
from unittest import mock

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidegate.model.readings import NATURAL_MAX
from tidegate.pipeline.tables import identities
from tidegate.pipeline.tables.identities import ALL, Doubtful, KnownIdentities, Runs, keys_of
from tidegate.pipeline.tables.snapshots import save_known
from tidegate.pipeline.tables.tables import Tables

DAY = 20_000
Identity = tuple[int, int]  # key, sequence

identity = st.tuples(st.integers(0, 5), st.integers(0, 60))
batches = st.lists(st.sets(identity, max_size=40), max_size=12)


def runs(identities: set[Identity]) -> Runs:
    ordered = sorted(identities)
    keys = np.array([key for key, _ in ordered], np.uint64)
    return Runs.of(keys, np.array([sequence for _, sequence in ordered], np.int64))


def members(parts: list[Doubtful]) -> set[Identity]:
    return {(part.key, sequence) for part in parts for sequence in range(part.low, part.high + 1)}


@given(batches)
def test_whatever_was_seen_before_is_doubtful(given_: list[set[Identity]]) -> None:
    known, truth = KnownIdentities(), set[Identity]()
    for batch in given_:
        doubtful = members(known.add(runs(batch), DAY))
        assert batch & truth <= doubtful <= batch
        truth |= batch


@given(batches)
def test_devices_that_only_count_upwards_are_never_doubtful(given_: list[set[Identity]]) -> None:
    known, reached = KnownIdentities(), dict[int, int]()
    for batch in given_:
        upwards = {(key, sequence) for key, sequence in batch if sequence > reached.get(key, -1)}
        assert known.add(runs(upwards), DAY) == []
        for key, sequence in upwards:
            reached[key] = max(sequence, reached.get(key, -1))


@given(batches, batches)
def test_a_snapshot_answers_as_the_original_does(before: list[set[Identity]], after: list[set[Identity]]) -> None:
    original, saved = KnownIdentities(), KnownIdentities()
    for batch in before:
        original.add(runs(batch), DAY)
        saved.add(runs(batch), DAY)
        saved.rebase(saved.merged(0))
        assert saved.recent_entries == 0
    for batch in after:
        assert saved.add(runs(batch), DAY) == original.add(runs(batch), DAY)
        assert saved.entries == original.entries


@given(batches, st.sets(identity, min_size=1, max_size=40))
def test_after_a_loss_the_absent_are_asked_for_once(lost: list[set[Identity]], batch: set[Identity]) -> None:
    truth = set().union(*lost)
    known = KnownIdentities(doubted_until_day=DAY + 7)
    keys = np.unique(runs(batch).keys)
    absent = known.absent(keys, DAY)
    assert absent.tolist() == keys.tolist()
    highs = [max((sequence for key, sequence in truth if key == asked), default=-1) for asked in absent.tolist()]
    known.learn(absent, np.array(highs, np.int64), DAY)
    assert known.absent(keys, DAY).size == 0
    assert batch & truth <= members(known.add(runs(batch), DAY))


def test_what_nobody_asked_the_table_for_stays_doubtful_after_a_loss() -> None:
    known = KnownIdentities(doubted_until_day=DAY + 7)
    assert known.add(runs({(1, 5)}), DAY) == [Doubtful(1, 5, 5)]
    assert known.merged(0)[1].tolist() == [ALL]
    assert KnownIdentities(doubted_until_day=DAY).add(runs({(1, 5)}), DAY) == []


def test_entries_that_nobody_touched_for_the_horizon_go() -> None:
    known = KnownIdentities()
    known.add(runs({(1, 5)}), DAY)
    known.add(runs({(2, 5)}), DAY + 30)
    assert known.merged(DAY + 1)[0].tolist() == [2]


def test_late_readings_between_two_runs_are_new_and_memory_stays_the_same() -> None:
    """A fleet that sends what is live first and its history behind it."""
    known = KnownIdentities()
    known.add(runs({(1, sequence) for sequence in range(10)}), DAY)
    for step in range(5):
        assert known.add(runs({(1, 100 + step)}), DAY) == []
        assert known.add(runs({(1, 10 + step)}), DAY) == []
    assert known.add(runs({(1, 12)}), DAY) == [Doubtful(1, 12, 12)]
    assert known.entries == 1


@given(st.lists(st.text(max_size=8), unique=True, max_size=50), st.integers(0, 2**62))
def test_keys_tell_devices_and_boots_apart(devices: list[str], boot: int) -> None:
    boots = np.full(len(devices), boot, np.int64)
    keys = keys_of(devices, boots)
    assert len(set(keys.tolist())) == len(devices)
    assert not set(keys.tolist()) & set(keys_of(devices, boots + 1).tolist())


@given(
    st.dictionaries(st.integers(0, 40), st.integers(1, 3)),
    st.dictionaries(st.integers(0, 40), st.integers(1, 3)),
    st.integers(1, 4),
    st.integers(1, 6),
)
def test_entries_are_merged_in_parts_as_in_one(
    base: dict[int, int], recent: dict[int, int], day_min: int, part_entries: int
) -> None:
    known = KnownIdentities()
    for key, day in base.items():
        known.add(runs({(key, 1)}), day)
    known.rebase(known.merged(0))
    for key, day in recent.items():
        known.add(runs({(key, 2)}), day)
    with mock.patch.object(identities, "_PART_ENTRIES", part_entries):
        parts = list(known.parts(day_min))
    expected = {key: day for key, day in {**base, **recent}.items() if day >= day_min}
    together = np.concatenate(parts, axis=1)
    assert together[identities.KEY].tolist() == sorted(expected)
    assert dict(zip(together[identities.KEY].tolist(), together[identities.DAY].tolist(), strict=True)) == expected
    assert max(part.shape[1] for part in parts) <= part_entries + len(recent)


def test_a_snapshot_takes_no_memory_for_all_its_entries(tmp_path: Path) -> None:
    """A device may make up as many boots as it sends readings: what it costs must be disk, not memory."""
    entries = np.zeros((identities.COLUMNS, 2_000_000), np.int64)
    entries[identities.KEY] = np.arange(entries.shape[1])
    known, tables = KnownIdentities(entries), Tables(tmp_path)
    known.add(runs({(5, 1), (1_999_999, 1), (3_000_000, 1)}), DAY)
    tracemalloc.start()
    try:
        save_known(tables, 0, 1, known, 0, fsync=False)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < entries.nbytes
    assert known.entries == 2_000_001


def test_a_device_cannot_work_out_a_boot_that_has_another_ones_key() -> None:
    """As it could where a key was the mixed bits of a device's digest and a mixed boot: every step can be undone."""
    (target,) = keys_of(["victim"], np.array([1], np.int64)).tolist()
    for number in range(20):
        name = f"mallory-{number}"
        digest = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")
        boot = (_unmixed(_unmixed(target) ^ digest) - 0x9E3779B97F4A7C15) % 2**64
        if boot <= NATURAL_MAX:
            assert keys_of([name], np.array([boot], np.int64)).tolist() != [target]


def _unmixed(value: int) -> int:
    """The inverse of the finaliser of splitmix64."""
    for shift, factor in ((31, 0x94D049BB133111EB), (27, 0xBF58476D1CE4E5B9), (30, 1)):
        found = value
        for _ in range(3):
            found = value ^ found >> shift
        value = found * pow(factor, -1, 2**64) % 2**64
    return value
