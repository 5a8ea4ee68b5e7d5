"""The entries of identities against a plain set: what was seen is never taken for new, whatever was forgotten."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tidegate.pipeline.tables.identities import ALL, Doubtful, KnownIdentities, Runs, device_hashes, keys_of

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
    hashes = device_hashes(devices)
    boots = np.full(len(devices), boot, np.int64)
    keys = keys_of(hashes, boots)
    assert len(set(keys.tolist())) == len(devices)
    assert not set(keys.tolist()) & set(keys_of(hashes, boots + 1).tolist())
