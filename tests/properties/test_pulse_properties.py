"""What holds of every query: one that goes on as it did is never taken for one that hangs, and one that hangs is."""

from hypothesis import given
from hypothesis import strategies as st

from tidegate.pipeline.pulse import FIRST, FOLLOWED, LOOK_S_MAX, RECENT, Pulse

floors_s = st.floats(2, 100)
batches = st.lists(st.tuples(st.integers(1, 100_000), st.floats(0.01, 100)), min_size=1, max_size=RECENT)
looks_s = st.floats(0.5, LOOK_S_MAX)


@given(floors_s, batches, looks_s, st.floats(0, 60))
def test_batches_may_grow_five_times_longer_each_and_are_waited_for(
    floor_s: float, done: list[tuple[int, float]], look_s: float, trigger_s: float
) -> None:
    pulse, now_s, longest_s = Pulse(floor_s, trigger_s), 0.0, 0.0
    for rows, wished_s in done:
        allowed_s = trigger_s + max(floor_s * (1 if longest_s else FIRST), FOLLOWED * longest_s)
        batch_s = min(wished_s, allowed_s - look_s)
        began_s = now_s
        while now_s - began_s < batch_s:
            now_s += look_s
            assert pulse.silent_s(now_s) <= pulse.patience_s(rows)
        pulse.beat()
        pulse.took(batch_s)
        longest_s = max(longest_s, batch_s)


@given(floors_s, batches, st.integers(0, 100_000))
def test_a_batch_in_proportion_to_its_rows_is_waited_for(
    floor_s: float, done: list[tuple[int, float]], rows_planned: int
) -> None:
    """Tasks take a fixed time and a time per row: whatever was seen, no proportional batch is longer than the wait."""
    pulse = Pulse(floor_s)
    pulse.beat()
    fixed_s, row_s = 0.05, min(seconds / rows for rows, seconds in done)
    for rows, _ in done:
        pulse.was_busy(rows, fixed_s + rows * row_s)
    assert pulse.patience_s(rows_planned) >= rows_planned * row_s


@given(floors_s, batches, looks_s, st.integers(0, 100_000))
def test_a_query_that_hangs_is_found(
    floor_s: float, done: list[tuple[int, float]], look_s: float, rows_planned: int
) -> None:
    pulse = Pulse(floor_s)
    for rows, seconds in done:
        pulse.beat()
        pulse.took(seconds)
        pulse.was_busy(rows, seconds)
    patience_s, now_s = pulse.patience_s(rows_planned), 0.0
    pulse.silent_s(now_s)
    for _ in range(int(patience_s / look_s) + 2):
        now_s += look_s
        silent_s = pulse.silent_s(now_s)
    assert silent_s > patience_s
