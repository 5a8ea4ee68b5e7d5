"""The interval bookkeeping against a plain set, with memory large enough and too small."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tidegate.pipeline.tables.identities as identities
from tidegate.pipeline.tables.identities import KnownIdentities, Run

run = st.builds(
    lambda device, boot, low, length: Run(device, boot, low, low + length),
    st.sampled_from(["d", "e"]),
    st.integers(0, 6),
    st.integers(0, 60),
    st.integers(0, 8),
)


def members(runs: list[Run]) -> set[tuple[str, int, int]]:
    return {(r.device, r.boot, seq) for r in runs for seq in range(r.low, r.high + 1)}


@given(st.lists(run, max_size=60))
def test_known_and_doubtful_cover_exactly_what_a_set_would_have(runs: list[Run]) -> None:
    seen, truth = KnownIdentities(), set()
    for one in runs:
        verdict = seen.add(one)
        repeated = members([one]) & truth
        known, doubtful = members(verdict.known), members(verdict.doubtful)
        assert known <= repeated
        assert repeated <= known | doubtful
        truth |= members([one])


@given(st.lists(run, max_size=60), st.lists(run, max_size=20))
def test_a_snapshot_answers_as_the_original_does(before: list[Run], after: list[Run]) -> None:
    original = KnownIdentities()
    for one in before:
        original.add(one)
    restored = KnownIdentities.restore(original.snapshot())
    for one in after:
        assert restored.add(one) == original.add(one)


def test_forgotten_parts_are_doubtful_never_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identities, "INTERVALS_MAX", 2)
    seen = KnownIdentities()
    for low in (0, 10, 20, 30):
        assert seen.add(Run("d", 1, low, low)) == ([], [])
    assert seen.add(Run("d", 1, 0, 0)).doubtful == [Run("d", 1, 0, 0)]
    assert seen.add(Run("d", 1, 30, 31)).known == [Run("d", 1, 30, 30)]


def test_boots_beyond_the_remembered_ones_are_doubtful() -> None:
    seen = KnownIdentities()
    for boot in range(1, identities.BOOTS_MAX + 2):
        seen.add(Run("d", boot, 0, 5))
    assert seen.add(Run("d", 1, 3, 4)).doubtful == [Run("d", 1, 3, 4)]
    assert seen.add(Run("d", 99, 0, 0)) == ([], [])
