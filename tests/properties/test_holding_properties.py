"""Holds: nothing is lost, nothing overtakes, nothing waits for ever, and clients that share a limit share it fairly."""

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from buckets import bucket
from tidegate.control.limiting.credits import ClientCredits
from tidegate.gateway.connection.holding import Hold

steps = st.lists(
    st.tuples(
        st.sampled_from(["push", "push", "push", "control", "limit", "lift", "level", "wait"]),
        st.floats(0.0, 3.0),
        st.integers(0, 3),
    ),
    max_size=60,
)


def hold(most: float = 20.0, per_s: float = 10.0) -> Hold:
    return Hold(ClientCredits(most, per_s, 0.0), bytes_max=50, hold_s_max=1e9)


def drain(one: Hold, now_s: float) -> tuple[list[bytes], float]:
    """Release until nothing waits, at the moments that are due; it must end."""
    found = one.release(now_s)
    for _ in range(2000):
        due_s = one.due_s(now_s)
        if due_s is None:
            return found, now_s
        assert due_s >= now_s
        now_s = due_s
        found += one.release(now_s)
    raise AssertionError(f"{one.waiting} wait for ever, because of {one.reason}")


@given(steps)
def test_nothing_is_lost_and_nothing_overtakes(steps: list[tuple[str, float, int]]) -> None:
    """Whatever is pushed, limited and lifted: packets come out in order, or expire, and in the end none is left."""
    one, now_s = hold(), 0.0
    buckets = (bucket(5.0, 1.0, "a"), bucket(0.5, 3.0, "b"))
    pushed: list[bytes] = []
    released: list[bytes] = []
    for number, (what, seconds, choice) in enumerate(steps):
        packet = b"%d" % number
        match what:
            case "push":
                pushed.append(packet)
                expires_s = now_s + seconds if choice == 3 else None
                topics = (buckets[:1], buckets, (), ())[choice]
                one.push(packet, qos=choice % 3, cost=1 + choice, now_s=now_s, buckets=topics, expires_s=expires_s)
            case "control":
                pushed.append(packet)
                one.push_control(packet, now_s)
            case "limit":
                one.limit(0.1 + seconds, now_s)
            case "lift":
                one.limit(None, now_s)
            case "level":
                one.credits.overload(3 * choice, now_s)
            case "wait":
                now_s += seconds
        released += one.release(now_s)
        assert one.is_full == (one.waiting_bytes > 50)
        assert (one.due_s(now_s) is None) == (one.oldest_s is None)
        assert one.oldest_s is None or (one.reason and one.oldest_s <= now_s)
    released += drain(one, now_s)[0]
    expired = one.take_expired()
    assert released == [packet for packet in pushed if packet not in set(expired)]
    assert len(released) + len(expired) == len(pushed)
    assert (one.waiting, one.waiting_bytes, one.is_full, one.reason) == (0, 0, False, "")


@given(st.lists(st.tuples(st.floats(0.05, 5.0), st.floats(0.1, 20.0)), min_size=1, max_size=20), st.integers(4, 12))
def test_who_does_not_listen_gets_its_share_and_no_more(advised: list[tuple[float, float]], window: int) -> None:
    """Always with a full window and whatever is advised in turn: the rates' sum over time, and the first burst."""
    one, now_s, share, got = hold(1e6, 1e6), 0.0, 0.0, 0
    for rate_per_s, seconds in advised:
        one.limit(rate_per_s, now_s)
        until_s = now_s + seconds
        share += rate_per_s * seconds
        while now_s <= until_s:
            while one.waiting < window:
                one.push(b"x", qos=1, cost=1, now_s=now_s)
            released = len(one.release(now_s))
            got += released
            if not released:
                now_s = max(now_s, min(one.due_s(now_s) or math.inf, until_s + 1e-6))
        now_s = until_s
    assert share - 2 <= got <= share + 4


@settings(max_examples=40)
@given(st.integers(2, 6), st.integers(1, 6), st.floats(0.5, 200.0), st.randoms(use_true_random=False))
def test_clients_that_wait_for_the_same_topics_take_turns(clients: int, each: int, rate_per_s: float, lucky) -> None:
    """However many messages wait of each and whoever's timer is first: no client gets two more than another."""
    topic = bucket(rate_per_s, 1.0)
    holds = [hold(1e6, 1e6) for _ in range(clients)]
    for one in holds:
        for number in range(each + lucky.randrange(4)):
            one.push(b"%d" % number, qos=1, cost=1, now_s=0.0, buckets=(topic,))
        one.release(0.0)
    got, now_s = [0] * clients, 0.0
    waiting = [one.waiting for one in holds]
    while any(one.waiting for one in holds):
        now_s = min(due_s for one in holds if (due_s := one.due_s(now_s)) is not None)
        order = list(range(clients))
        lucky.shuffle(order)
        for place in order:
            if lucky.random() < 0.9:  # a timer may be late
                got[place] += len(holds[place].release(now_s))
        short = [got[place] for place in range(clients) if got[place] < waiting[place] - 1]
        assert not short or max(got) - min(short) <= 2
    assert sum(got) <= 1 + rate_per_s * now_s + 1e-6 + clients


@given(st.floats(0.1, 20.0), st.integers(0, 40), st.floats(0.0, 5.0), st.lists(st.floats(0.0, 2.0), max_size=30))
def test_a_lifted_limit_never_lets_out_a_burst(
    rate_per_s: float, waiting: int, lifted_s: float, more: list[float]
) -> None:
    """What waits drains at a rate that doubles slowly, and the limit is gone when it is empty."""
    one = hold(1e9, 1e9)
    one.limit(rate_per_s, 0.0)
    one.passes(3, 3, 0.0)
    for _ in range(waiting):
        one.push(b"x", qos=1, cost=1, now_s=0.0)
    one.release(0.0)
    while (due_s := one.due_s(0.0)) is not None and due_s <= lifted_s and one.release(due_s):
        pass
    one.release(lifted_s)
    one.limit(None, lifted_s)
    for seconds in more:
        if one.waiting:
            one.push(b"x", qos=1, cost=1, now_s=lifted_s + seconds / 1e3)
    left = one.waiting
    now_s, out = lifted_s, 0
    while one.waiting:
        now_s = one.due_s(now_s) or now_s
        out += len(one.release(now_s))
        doubled = math.floor((now_s - lifted_s) / 3.0 + 1e-9)
        assert out <= 4 + (now_s - lifted_s) * rate_per_s * 1.05 * 2 ** (1 + doubled)
    assert out == left
    assert one.passes(100, 100, now_s)
