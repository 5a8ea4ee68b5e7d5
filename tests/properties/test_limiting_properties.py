"""Buckets and credits: never more than they allow, never a wait that is too long, and nobody notices who listens."""

import math
import random
from itertools import accumulate, zip_longest
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from buckets import WITHOUT_DRAUGHTS, bucket
from tidegate.control.limiting.credits import BURST, TOLERANCE, ClientCredits, cost_of
from tidegate.control.limiting.token_bucket import ROUNDING
from tidegate.devices.pacing import Pacing
from tidegate.loop.families import LIFETIME_INTERVALS
from tidegate.model.advice import Advice

rates = st.floats(0.01, 1e4)
bursts = st.floats(1.0, 100.0)
gaps_s = st.lists(st.floats(0.0, 10.0), min_size=1, max_size=40)


@given(
    rates,
    bursts,
    st.sampled_from([1, 2, WITHOUT_DRAUGHTS]),
    st.lists(st.tuples(st.floats(0.0, 10.0), st.floats(0.001, 150.0)), max_size=30),
)
def test_no_more_is_granted_than_the_burst_and_the_rate(
    rate_per_s: float, burst: float, processes: int, messages: list[tuple[float, float]]
) -> None:
    one, granted, now_s = bucket(rate_per_s, burst, processes=processes), 0.0, 0.0
    for gap_s, cost in messages:
        now_s += gap_s
        wait_s = one.wait_s(cost, now_s)
        passes = one.take(cost, now_s)
        assert passes == (wait_s == 0)
        if passes:
            # A message larger than the burst passes when the bucket is full; what was there covers all but its excess.
            granted += min(cost, burst)
            assert granted <= (burst + rate_per_s * now_s) * (1 + 1e-9) + ROUNDING
            granted += cost - min(cost, burst)
        assert math.isfinite(wait_s)


@given(rates, bursts, st.floats(0.0, 150.0), st.floats(0.0, 1e6))
def test_after_the_wait_it_passes(rate_per_s: float, burst: float, cost: float, now_s: float) -> None:
    one = bucket(rate_per_s, burst)
    assert one.take(2 * burst, now_s)
    waits = 0
    while not one.take(cost, now_s):
        wait_s = one.wait_s(cost, now_s)
        assert now_s + wait_s > now_s
        now_s += wait_s
        waits += 1
    assert waits <= 3


@given(st.floats(0.1, 1e3), bursts, gaps_s)
def test_the_delay_is_the_unfinished_work_over_the_burst_and_the_rate(
    rate_per_s: float, burst: float, gaps: list[float]
) -> None:
    """max(0, U + 1 - b) / r, with U the work that a queue served at r has when a message arrives."""
    one = bucket(rate_per_s, burst)
    work, before_s, released_s = 0.0, 0.0, 0.0
    for arrived_s in accumulate(gap_s / rate_per_s for gap_s in gaps):
        work = max(0.0, work - rate_per_s * (arrived_s - before_s))
        expected_s = max(0.0, work + 1 - burst) / rate_per_s
        first_s = max(arrived_s, released_s)
        released_s = first_s + one.wait_s(1, first_s)
        while not one.take(1, released_s):
            released_s += one.wait_s(1, released_s)
        assert abs(released_s - arrived_s - expected_s) <= 1e-6 * (1 + released_s) + 2 * ROUNDING / rate_per_s
        work, before_s = work + 1, arrived_s


@given(st.floats(0.1, 1e3), bursts, gaps_s)
def test_a_place_in_line_is_where_taking_turns_would_lead(rate_per_s: float, burst: float, gaps: list[float]) -> None:
    """Whoever reserves is let through when it would be if it waited in person, and nobody before it."""
    one, work, before_s, last_s = bucket(rate_per_s, burst), 0.0, 0.0, 0.0
    for now_s in accumulate(gap_s / rate_per_s for gap_s in gaps):
        work = max(0.0, work - rate_per_s * (now_s - before_s))
        place_s = one.reserve(1, now_s)
        assert place_s >= max(now_s, last_s * (1 - 1e-12))
        assert abs(place_s - now_s - max(0.0, work + 1 - burst) / rate_per_s) <= 1e-9 * (1 + now_s)
        work, before_s, last_s = work + 1, now_s, place_s


@given(
    st.lists(
        st.tuples(
            st.floats(-5.0, 5.0),
            st.integers(1, 9),
            st.integers(0, 1024**2),
            st.one_of(st.just("keep"), st.none(), st.floats(1e-3, 1e3)),
            st.integers(0, 10),
        ),
        max_size=60,
    )
)
def test_credits_are_never_more_than_they_were_and_came(
    steps: list[tuple[float, int, int, str | float | None, int]],
) -> None:
    """On any clock, at any levels and limits: what passes was there, and the state is always a number."""
    credits, now_s, latest_s, spent = ClientCredits(100.0, 50.0, 0.0), 0.0, 0.0, 0.0
    for step_s, publishes, size, limit, level in steps:
        now_s = max(0.0, now_s + step_s)
        latest_s = max(latest_s, now_s)
        credits.overload(level, now_s)
        if limit != "keep":
            credits.limit(limit, now_s)  # type: ignore[arg-type]
        cost = cost_of(size)
        waits = credits.wait_s(cost, now_s) > 0
        if credits.take(publishes, cost, now_s):
            spent += min(cost, 100.0)
            assert publishes > 1 or not waits
            assert spent <= 100.0 + 50.0 * latest_s + 1e-3
            spent += cost - min(cost, 100.0)
        left, turns, at_s = credits.state(now_s)
        assert math.isfinite(left)
        assert left <= 100.0
        assert -1e-3 <= turns <= BURST
        assert at_s == latest_s


class Document(NamedTuple):
    at_s: float
    interval_s: float
    lapses_s: float


@st.composite
def advised(draw: st.DrawFn) -> list[Document]:
    """Tightened, relaxed, renewed or given up, in any order, as a controller does it: a lifetime is at least three
    intervals, and what is not left to lapse is renewed or replaced within a third of it."""
    documents, at_s = [], 0.0
    for interval_s in draw(st.lists(st.one_of(st.just(0.0), st.floats(0.05, 60.0)), min_size=1, max_size=12)):
        lifetime_s = max(10.0, LIFETIME_INTERVALS * interval_s)
        documents.append(Document(at_s, interval_s, at_s + lifetime_s))
        at_s += lifetime_s * draw(st.one_of(st.floats(0.001, 1 / 3), st.just(1.5)))
    return documents


def enforced(documents: list[Document]) -> list[tuple[float, Document | None]]:
    """When the gateway enforces what: every document until the next one, or until it lapses."""
    changes: list[tuple[float, Document | None]] = []
    for one, following in zip_longest(documents, documents[1:]):
        changes.append((one.at_s, one))
        if following is None or following.at_s > one.lapses_s:
            changes.append((one.lapses_s, None))
    return changes


@given(st.floats(0.05, 5.0), st.floats(0.0, 30.0), advised(), st.lists(st.floats(0.0, 1.0), max_size=20), st.integers())
def test_a_device_that_follows_advice_never_notices(
    default_s: float, began_s: float, documents: list[Document], late: list[float], seed: int
) -> None:
    """The rate that it is told is enforced, and no message of it has to wait: whatever is advised when, and however
    late its messages are now and then. It hears advice with the acknowledgement of its own message."""
    pacing, credits = Pacing(default_s, random.Random(seed)), ClientCredits(50_000.0, 10_000.0, 0.0)
    changes, said = enforced(documents), None
    now_s = began_s
    for number in range(120):
        while (due_s := pacing.due_s(now_s)) > now_s:
            now_s = due_s
        now_s += default_s * late[number % len(late)] if late else 0.0
        while changes and changes[0][0] <= now_s:
            at_s, said = changes.pop(0)
            credits.limit(1 / said.interval_s if said is not None and said.interval_s > 0 else None, at_s)
        assert credits.take(1, 1, now_s), f"message {number} at {now_s} s"
        pacing.sent(now_s)
        if said is not None:
            pacing.advise(Advice(interval_s=said.interval_s, lifetime_s=said.lapses_s - now_s), now_s)


@given(st.floats(0.01, 10.0), st.lists(st.floats(0.2, 1.0), max_size=20))
def test_one_that_does_not_listen_gets_its_share_and_little_more(rate_per_s: float, cuts: list[float]) -> None:
    """It tries all the time; a rate that falls gives it a message per halving more."""
    credits, now_s, passed, share = ClientCredits(50_000.0, 10_000.0, 0.0), 0.0, 0, 0.0
    lowest = rate_per_s
    for cut in [1.0, *cuts]:
        lowest *= cut
        credits.limit(lowest, now_s)
        until_s = now_s + 5 / lowest
        while now_s < until_s:
            passed += credits.take(1, 1, now_s)
            now_s += 0.05 / lowest
        share += (now_s - (until_s - 5 / lowest)) * lowest
    halvings = math.log2(rate_per_s / lowest)
    # Between a change and its next message it keeps the old rate: at most one more message each.
    assert passed <= BURST + TOLERANCE * share + halvings + len(cuts) + 1
