"""Credits that are kept between requests are those of a connection, whichever process each request meets."""

import random

from hypothesis import given
from hypothesis import strategies as st

from tidegate.control.limiting.credits import ClientCredits
from tidegate.gateway.http_credits import HttpCredits
from tidegate.gateway.routing import Router
from tidegate.gateway.shared.memory import Shared
from tidegate.model.routes import Routes

Step = tuple[float, float, float | None]
MOST, PER_S = 20.0, 2.0
STEPS = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.01, 0.5, 1.0, 3.0, 20.0]),  # seconds since the last one
        st.sampled_from([1.0, 5.0, 30.0]),  # cost
        st.sampled_from([None, 0.1, 0.5, 1.0, 2.0, 10.0]),  # advised rate
    ),
    max_size=40,
)


def processes() -> list[HttpCredits]:
    shared = Shared.create(processes=2)
    found = []
    for slot in range(2):
        shared.begin(slot, process=slot + 1)
        router = Router(Routes(brokers=()), shared, random.Random(0), slot=slot)
        found.append(HttpCredits(router.account, most=MOST, per_s=PER_S))
    return found


@given(STEPS, st.lists(st.booleans(), min_size=40, max_size=40))
def test_requests_get_what_a_connection_would_get(
    steps: list[tuple[float, float, float | None]], meets: list[bool]
) -> None:
    both, now_s = processes(), 1_000.0
    connection = ClientCredits(MOST, PER_S, now_s)
    for (passed_s, cost, rate_per_s), other in zip(steps, meets, strict=False):
        now_s += passed_s
        connection.limit(rate_per_s, now_s)
        passes = connection.take(1, cost, now_s)
        met = both[other].take("pump-1", cost, rate_per_s, now_s)
        assert (met is None) == passes
        if met is not None:
            assert abs(met.until_s - connection.wait_s(cost, now_s)) < 1e-6
            assert met.limit == connection.reason(cost, now_s)


@given(st.lists(st.tuples(st.sampled_from([1.0, 2.0, 5.0, 60.0]), st.integers(1, 5)), max_size=12))
def test_a_device_that_follows_advice_never_meets_a_limit(advised: list[tuple[float, int]]) -> None:
    """It hears of another interval with the answer to its own request, and may come once after the old one already."""
    (credits_here, _), now_s, interval_s = processes(), 1_000.0, 1.0
    assert credits_here.take("pump-1", 1.0, 1.0, now_s) is None
    for next_s, requests in advised:
        for _ in range(requests):
            now_s += interval_s
            assert credits_here.take("pump-1", 0.0, 1.0 / next_s, now_s) is None
            interval_s = next_s


@given(STEPS)
def test_what_is_given_back_can_be_taken_again(steps: list[Step]) -> None:
    (credits_here, _), now_s = processes(), 1_000.0
    for passed_s, cost, rate_per_s in steps:
        now_s += passed_s
        if credits_here.take("pump-1", cost, rate_per_s, now_s) is None:
            credits_here.give_back("pump-1", cost, rate_per_s, now_s)
            assert credits_here.take("pump-1", cost, rate_per_s, now_s) is None
