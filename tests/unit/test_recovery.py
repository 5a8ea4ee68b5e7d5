"""When a server that ended is started again, how long one waits between attempts, and what is said meanwhile."""

from hypothesis import given
from hypothesis import strategies as st

from tidegate.brokers.nats.recovery import DEAF_S, DELAY_S_MAX, DELAY_S_MIN, STEADY_S, WELL_S, Recovery

WORDS = "address already in use (log: control.log)."


def crashes(recovery: Recovery, times: int, now_s: float = 0.0) -> list[float]:
    """The delays of a server that ends as soon as it is started, watched eight times a second."""
    delays = []
    for _ in range(times):
        ended_s = now_s
        while not recovery.down(now_s, WORDS):
            now_s += 0.125
        recovery.started(now_s)
        delays.append(now_s - ended_s)
    return delays


def test_each_end_at_once_doubles_the_wait_up_to_its_bound() -> None:
    assert crashes(Recovery("control"), 9) == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]


def test_a_server_that_ran_for_a_while_is_started_as_soon_as_the_first_time() -> None:
    recovery = Recovery("control")
    assert crashes(recovery, 5)[-1] == 8.0
    recovery.up(100.0, None)
    assert crashes(recovery, 2, now_s=100.0 + STEADY_S) == [0.5, 1.0]
    assert "1 time" not in (recovery.alarm or "")
    assert "2 time(s) so far" in (recovery.alarm or "")


def test_an_end_is_told_with_the_last_words_until_the_server_is_well_again() -> None:
    recovery = Recovery("control")
    assert recovery.alarm is None
    assert not recovery.down(0.0, WORDS)
    assert recovery.alarm == f"The server control has ended, and it is started again: {WORDS}"
    assert recovery.down(1.0, "something else by now")
    recovery.started(1.0)
    assert recovery.alarm == f"The server control has ended, and it was started again, 1 time(s) so far: {WORDS}"
    recovery.up(1.5, None)
    assert recovery.alarm is not None, "it may end at once again"
    recovery.up(1.5 + WELL_S, None)
    assert recovery.alarm is None


def test_a_server_that_ends_again_and_again_keeps_its_alarm() -> None:
    recovery, now_s = Recovery("broker-1"), 0.0
    for _ in range(10):
        while not recovery.down(now_s, WORDS):
            now_s += 1.0
            assert WORDS in (recovery.alarm or "")
        recovery.started(now_s)
        recovery.up(now_s + WELL_S / 2, None)
        assert WORDS in (recovery.alarm or "")


def test_a_server_that_does_not_answer_is_told_after_a_while_and_left_alone() -> None:
    recovery = Recovery("broker-1")
    recovery.up(0.0, None)
    recovery.up(1.0, "its health page does not answer.")
    recovery.up(DEAF_S, "its health page does not answer.")
    assert recovery.alarm is None
    recovery.up(1.0 + DEAF_S, "its health page does not answer.")
    assert recovery.alarm == "The server broker-1 runs, but its health page does not answer."
    recovery.up(20.0, None)
    recovery.up(20.0 + WELL_S, None)
    assert recovery.alarm is None


def test_a_server_that_cannot_be_started_is_one_that_ends_at_once() -> None:
    recovery = Recovery("control")
    recovery.down(0.0, WORDS)
    recovery.not_started(1.0, "it cannot be started (no memory).")
    assert "1 time(s) so far: it cannot be started (no memory)." in (recovery.alarm or "")
    assert not recovery.down(1.9, WORDS)
    assert recovery.down(2.0, WORDS)


# Eighths of a second are exact in a float: a wait of exactly the least delay is neither more nor less.
passed = st.integers(1, 800).map(lambda eighths: eighths / 8)
steps = st.lists(st.tuples(st.sampled_from(["ends", "well", "deaf"]), passed), max_size=40)


@given(steps)
def test_a_server_that_is_down_has_an_alarm_and_a_bounded_wait(course: list[tuple[str, float]]) -> None:
    recovery, now_s, down_since_s = Recovery("broker-1"), 0.0, None
    for what, passed_s in course:
        now_s += passed_s
        if what == "ends" or down_since_s is not None:
            is_due = recovery.down(now_s, WORDS)
            down_since_s = now_s if down_since_s is None else down_since_s
            assert recovery.alarm is not None
            waited_s = now_s - down_since_s
            assert is_due or waited_s < DELAY_S_MAX
            assert not is_due or waited_s >= DELAY_S_MIN
            if is_due:
                recovery.started(now_s)
                down_since_s = None
        else:
            recovery.up(now_s, None if what == "well" else "it is deaf.")
