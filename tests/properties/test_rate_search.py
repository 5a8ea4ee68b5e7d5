"""The search for the highest rate that is held, on chains whose limit is known."""

from hypothesis import given
from hypothesis import strategies as st

from tidegate_bench.chain.search import CLOSE, LOWEST_PER_S, Attempt, next_attempt, sustained_per_s

ATTEMPTS_MAX = 60


def searched(probe_limit_per_s: float, proof_limit_per_s: float) -> list[Attempt]:
    """Every attempt at a chain that holds probes up to one rate and proofs up to another."""
    made: list[Attempt] = []
    while (attempt := next_attempt(made)) is not None:
        assert len(made) < ATTEMPTS_MAX
        limit_per_s = proof_limit_per_s if attempt.is_proof else probe_limit_per_s
        held = attempt.rate_per_s <= limit_per_s
        made.append(Attempt(rate_per_s=attempt.rate_per_s, is_proof=attempt.is_proof, held=held))
    return made


LIMITS = st.floats(min_value=2 * LOWEST_PER_S, max_value=400_000)


@given(LIMITS)
def test_what_it_finds_is_held_and_close_to_the_limit(limit_per_s: float) -> None:
    made = searched(limit_per_s, limit_per_s)
    assert limit_per_s / CLOSE * 0.99 <= sustained_per_s(made) <= limit_per_s
    assert sum(attempt.is_proof for attempt in made) == 1


@given(LIMITS, st.floats(min_value=0.3, max_value=1.0))
def test_a_rate_that_only_probes_hold_is_lowered_until_the_proof_holds(limit_per_s: float, share: float) -> None:
    made = searched(limit_per_s, limit_per_s * share)
    found_per_s = sustained_per_s(made)
    if limit_per_s * share > 2 * LOWEST_PER_S:
        assert limit_per_s * share * 0.8 <= found_per_s <= limit_per_s * share


@given(LIMITS, st.integers(min_value=0, max_value=ATTEMPTS_MAX))
def test_a_search_that_was_broken_off_goes_on_as_if_it_had_not(limit_per_s: float, at: int) -> None:
    made = searched(limit_per_s, limit_per_s)
    before = made[: at % len(made)]
    following = next_attempt(before)
    assert following is not None
    expected = made[len(before)]
    assert (following.rate_per_s, following.is_proof) == (expected.rate_per_s, expected.is_proof)


@given(LIMITS, st.sets(st.integers(min_value=0, max_value=ATTEMPTS_MAX)))
def test_a_disturbance_now_and_then_changes_nothing(limit_per_s: float, disturbed: set[int]) -> None:
    """At most every second attempt, so that no rate is disturbed as often as it may be tried."""
    made: list[Attempt] = []
    while (attempt := next_attempt(made)) is not None:
        assert len(made) < 2 * ATTEMPTS_MAX
        fails = len(made) % 2 == 0 and len(made) // 2 in disturbed
        held = attempt.rate_per_s <= limit_per_s and not fails
        made.append(
            Attempt(rate_per_s=attempt.rate_per_s, is_proof=attempt.is_proof, held=held, disturbed=fails),
        )
    assert sustained_per_s(made) == sustained_per_s(searched(limit_per_s, limit_per_s))


def test_a_rate_that_is_never_held_counts_however_disturbed() -> None:
    made: list[Attempt] = []
    while (attempt := next_attempt(made)) is not None:
        assert len(made) < ATTEMPTS_MAX
        made.append(Attempt(rate_per_s=attempt.rate_per_s, is_proof=attempt.is_proof, disturbed=True))
    assert sustained_per_s(made) == 0.0


def test_a_chain_that_holds_nothing_ends_the_search() -> None:
    made = searched(0.0, 0.0)
    assert sustained_per_s(made) == 0.0
    assert not any(attempt.is_proof for attempt in made)


def test_one_that_holds_everything_does_so_too() -> None:
    assert sustained_per_s(searched(1e12, 1e12)) >= 400_000
