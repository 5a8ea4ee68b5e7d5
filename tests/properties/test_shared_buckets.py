"""Buckets that processes share: whoever draws and whoever dies, never more than burst + rate x time is granted."""

import os
import signal
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.control.limiting.token_bucket import DRAUGHT_S, TokenBucket
from tidegate.gateway.shared.memory import Shared

PROCESSES = 3
# Who does what after which time: takes so many, reserves one and waits for it, or dies and is replaced.
STEPS = st.lists(
    st.tuples(
        st.integers(0, PROCESSES - 1),
        st.one_of(st.integers(1, 5), st.sampled_from(["dies", "reserves", "gives back"])),
        st.one_of(st.just(0.0), st.floats(0, 2 * DRAUGHT_S), st.floats(0, 3)),
    ),
    max_size=60,
)


@given(STEPS, st.sampled_from([1.0, 7.5, 400.0, 5_000.0]), st.sampled_from([5.0, 40.0, 1_000.0]))
def test_no_span_of_time_sees_more_than_the_burst_and_the_rate(
    steps: list[tuple[int, int | str, float]], rate_per_s: float, burst: float
) -> None:
    shared = Shared.create(processes=PROCESSES, buckets=1)

    def opened() -> TokenBucket:
        return shared.bucket(0, rate_per_s=rate_per_s, burst=burst)

    buckets, now_s = [opened() for _ in range(PROCESSES)], 100.0
    granted: list[tuple[float, float]] = []
    for process, what, pause_s in steps:
        now_s += pause_s
        bucket = buckets[process]
        if what == "dies":
            buckets[process] = opened()
        elif what == "reserves":
            granted.append((bucket.reserve(1, now_s), 1))
        elif what == "gives back":
            if bucket.take(1, now_s):
                bucket.give_back(1)
        elif isinstance(what, int) and bucket.take(what, now_s):
            granted.append((now_s, what))
    granted.sort()
    for first, (began_s, _) in enumerate(granted):
        total = 0.0
        for at_s, tokens in granted[first:]:
            total += tokens
            assert total <= burst + rate_per_s * (at_s - began_s) + 1e-6


@given(st.floats(1, 1e5), st.floats(1, 1e4), st.lists(st.floats(0, 0.5), max_size=30))
def test_who_waits_as_long_as_it_is_told_gets_it_and_not_sooner(
    rate_per_s: float, burst: float, pauses_s: list[float]
) -> None:
    shared = Shared.create(processes=2, buckets=1)
    left, right = (shared.bucket(0, rate_per_s=rate_per_s, burst=burst) for _ in range(2))
    now_s = 50.0
    for pause_s in pauses_s:
        now_s += pause_s
        right.take(1, now_s)
        wait_s = left.wait_s(1, now_s)
        if wait_s > 1e-6:
            assert not left.take(1, now_s + wait_s / 2)
        assert left.take(1, now_s + wait_s + 1e-6)
        now_s += wait_s + 1e-6


@given(st.floats(1, 1e5), st.floats(1, 1e4), st.integers(1, 40))
def test_places_are_given_in_the_order_of_asking(rate_per_s: float, burst: float, count: int) -> None:
    shared = Shared.create(processes=2, buckets=1)
    buckets = [shared.bucket(0, rate_per_s=rate_per_s, burst=burst) for _ in range(2)]
    at_s = [buckets[number % 2].reserve(1, 10.0) for number in range(count)]
    assert at_s == sorted(at_s)
    assert at_s[-1] == pytest.approx(max(10.0, 10.0 + (count - buckets[0]._most) / rate_per_s), abs=1e-6)


@pytest.mark.parametrize("burst", [1.0, 100.0])
def test_all_that_the_rate_allows_is_granted_in_the_long_run(burst: float) -> None:
    shared = Shared.create(processes=2, buckets=1)
    buckets = [shared.bucket(0, rate_per_s=1_000.0, burst=burst) for _ in range(2)]
    times_s = (10.0 + step / 10_000 for step in range(20_001))
    granted = sum(bucket.take(1, now_s) for now_s in times_s for bucket in buckets)
    assert 2_000 * 0.99 <= granted <= 2_000 + burst


def test_more_than_fits_in_is_granted_when_it_is_full() -> None:
    bucket = Shared.create(buckets=1).bucket(0, rate_per_s=10.0, burst=5.0)
    assert bucket.wait_s(20, 100.0) == 0.0
    assert bucket.take(20, 100.0)
    assert bucket.wait_s(1, 100.0) == pytest.approx(1.6)
    assert not bucket.take(1, 101.5)
    assert bucket.take(1, 101.7)


def test_a_process_that_dies_with_the_lock_keeps_nobody_out() -> None:
    """Real processes that draw as fast as they can; one is killed over and over, wherever it is just then."""
    shared = Shared.create(processes=3, buckets=1)
    rate_per_s, burst = 20_000.0, 200.0
    began_s = time.monotonic()

    def draws(slot: int) -> int:
        child = os.fork()
        if child == 0:
            bucket, cells = shared.bucket(0, rate_per_s=rate_per_s, burst=burst), shared.rows[slot].cells
            while True:
                if bucket.take(1, time.monotonic()):
                    cells[0] += 1

        return child

    survivor, children = draws(0), []
    try:
        for _ in range(12):
            child = draws(1)
            children.append(child)
            time.sleep(0.015)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        before = shared.rows[0].cells[0]
        time.sleep(0.1)
        assert shared.rows[0].cells[0] > before, "the other goes on"
    finally:
        os.kill(survivor, signal.SIGKILL)
        os.waitpid(survivor, 0)
    granted = shared.rows[0].cells[0] + shared.rows[1].cells[0]
    assert granted <= burst + rate_per_s * (time.monotonic() - began_s)
