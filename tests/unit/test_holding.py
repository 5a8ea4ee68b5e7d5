"""What waits of one connection, by hand."""

import pytest

from buckets import bucket
from tidegate.control.limiting.credits import BURST, TOLERANCE, ClientCredits
from tidegate.gateway.connection.holding import DOUBLE_S, Hold


def hold(rate_per_s: float | None = None, *, keep_alive_s: float = 0.0, most: float = 1e6, per_s: float = 1e6) -> Hold:
    """Held to a rate where one is given; the turns that a client has to begin with are used up at 0 s."""
    one = Hold(ClientCredits(most, per_s, 0.0), bytes_max=100, hold_s_max=30.0, keep_alive_s=keep_alive_s)
    if rate_per_s is not None:
        one.limit(rate_per_s / TOLERANCE, 0.0)
        assert one.passes(int(BURST), BURST, 0.0)
    return one


def push(one: Hold, *packets: bytes, now_s: float = 0.0, qos: int = 1, **more: object) -> None:
    for packet in packets:
        one.push(packet, qos=qos, cost=1, now_s=now_s, **more)  # type: ignore[arg-type]


def timed(one: Hold, until_s: float = 100.0, now_s: float = 0.0) -> list[tuple[float, bytes]]:
    """What is released when, if somebody calls at every moment that is due."""
    found = []
    due_s: float | None = now_s
    while due_s is not None and due_s <= until_s:
        found += [(round(due_s, 3), packet) for packet in one.release(due_s)]
        due_s = one.due_s(due_s)
    return found


def test_what_is_within_its_credits_passes() -> None:
    one = hold(most=5.0, per_s=1.0)
    assert one.passes(5, 5, 0.0)
    assert not one.passes(1, 1, 0.5)
    assert one.passes(1, 1, 1.0)
    assert (one.waiting, one.oldest_s, one.due_s(1.0), one.reason) == (0, None, None, "")


def test_what_waits_is_released_in_order_at_the_clients_rate() -> None:
    one = hold(2.0)
    push(one, b"a", b"b", b"c")
    assert one.release(0.0) == []
    assert (one.waiting, one.waiting_bytes, one.oldest_s, one.reason) == (3, 3, 0.0, "its own rate")
    assert timed(one) == [(0.5, b"a"), (1.0, b"b"), (1.5, b"c")]
    assert (one.waiting, one.waiting_bytes, one.oldest_s, one.reason, one.held_total) == (0, 0, None, "", 3)


def test_a_client_of_which_much_waits_is_held_to_the_rate_without_tolerance() -> None:
    one = hold(TOLERANCE)
    push(one, *(b"%d" % number for number in range(9)))
    found = [at_s for at_s, _ in timed(one)]
    assert found[:6] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert found[6:] == pytest.approx([6 + turn / TOLERANCE for turn in (1, 2, 3)], abs=0.001)


def test_a_client_of_which_much_waits_is_held_to_a_lower_rate_at_once() -> None:
    one = hold(TOLERANCE)
    push(one, *(b"%d" % number for number in range(9)))
    one.limit(0.1, 0.0)
    assert [at_s for at_s, _ in timed(one, until_s=29.0)] == [10.0, 20.0]
    one.limit(1.0, 29.0)
    assert one.release(29.5) == [b"2"]


def test_nothing_passes_what_waits() -> None:
    one = hold(2.0)
    push(one, b"a")
    assert not one.passes(1, 1, 10.0)
    assert one.release(10.0) == [b"a"]
    assert one.passes(1, 1, 10.0)


def test_credits_that_are_used_up_are_named() -> None:
    one = hold(most=2.0, per_s=1.0)
    assert one.passes(2, 2, 0.0)
    push(one, b"a")
    assert one.release(0.0) == []
    assert one.reason == "its own credits"
    assert timed(one) == [(1.0, b"a")]


def test_other_packets_keep_their_place_and_cost_nothing() -> None:
    one = hold(2.0)
    push(one, b"a")
    one.push_control(b"subscribe", 0.0)
    push(one, b"b")
    one.push_control(b"disconnect", 0.0)
    assert one.waiting == 2
    assert timed(one) == [(0.5, b"a"), (0.5, b"subscribe"), (1.0, b"b"), (1.0, b"disconnect")]
    assert (one.waiting_bytes, one.held_total) == (0, 2)


def test_it_is_full_when_too_many_bytes_wait() -> None:
    one = hold(1.0)
    push(one, b"x" * 60)
    assert not one.is_full
    push(one, b"x" * 60)
    assert one.is_full
    assert len(one.release(1.0)) == 1
    assert not one.is_full


@pytest.mark.parametrize(
    ("keep_alive_s", "overdue_s"), [(0.0, 30.0), (10.0, 5.0), (60.0, 30.0), (120.0, 30.0)], ids=str
)
def test_nothing_waits_longer_than_half_the_keep_alive(keep_alive_s: float, overdue_s: float) -> None:
    one = hold(0.001, keep_alive_s=keep_alive_s)
    push(one, b"a", now_s=1.0)
    one.release(1.0)
    assert not one.overdue(0.99 + overdue_s)
    assert one.overdue(1.0 + overdue_s)
    assert one.due_s(1.0) == pytest.approx(1.0 + overdue_s), "somebody has to look by then"
    assert one.due_s(1.0 + overdue_s) > 1.0 + overdue_s  # type: ignore[operator]


def test_when_nothing_waits_nothing_is_overdue() -> None:
    assert not hold().overdue(1e9)


def test_what_expires_is_not_released_but_handed_out_once() -> None:
    one = hold(1.0)
    push(one, b"a", expires_s=0.4)
    push(one, b"b", expires_s=2.0)
    push(one, b"c", expires_s=1.9)
    assert timed(one) == [(1.0, b"b")]
    assert one.take_expired() == [b"a", b"c"]
    assert one.take_expired() == []
    assert one.waiting == 0


def test_a_topics_limit_is_waited_for_and_named() -> None:
    one, topic = hold(), bucket(4.0, 1.0, "a/#")
    assert one.passes_limits(1, 1, 0.0, (topic,))
    assert not one.passes_limits(1, 1, 0.0, (topic,))
    push(one, b"a", b"b", buckets=(topic,))
    push(one, b"elsewhere")
    assert one.release(0.0) == []
    assert one.reason == "the topics a/#"
    assert timed(one) == [(0.25, b"a"), (0.5, b"b"), (0.5, b"elsewhere")]


def test_of_several_limits_the_last_to_be_ready_counts() -> None:
    fast, slow = bucket(4.0, 1.0, "a/#"), bucket(1.0, 1.0, "a/b")
    one = hold()
    assert one.passes_limits(1, 1, 0.0, (fast, slow))
    push(one, b"a", buckets=(fast, slow))
    assert one.release(0.0) == []
    assert one.reason == "the topics a/b"
    assert timed(one) == [(1.0, b"a")]


def test_a_publish_that_does_not_pass_takes_nothing_from_any_limit() -> None:
    free, used, one = bucket(1.0, 1.0), bucket(1.0, 1.0), hold(most=1.0, per_s=1e-9)
    assert used.take(1, 0.0)
    assert not one.passes_limits(1, 1, 0.0, (free, used))
    assert free.take(1, 0.0)
    assert one.passes(1, 1, 0.0)


def test_a_late_timer_does_not_cost_a_client_the_topics_rate() -> None:
    one, topic = hold(), bucket(1000.0, 1.0)
    push(one, *(b"%d" % number for number in range(60)), buckets=(topic,))
    assert one.release(0.0) == [b"0"]
    assert len(one.release(0.0205)) == 20
    assert len(one.release(0.0405)) == 20


def test_time_in_which_the_client_had_no_turn_is_no_place_in_a_topics_line() -> None:
    one, topic = hold(0.01), bucket(1.0, 1.0)
    push(one, b"a", b"b", b"c", buckets=(topic,))
    assert one.release(0.0) == []
    one.limit(1000.0, 100.0)
    assert timed(one, 200.0, now_s=100.0) == [(100.0, b"a"), (101.0, b"b"), (102.0, b"c")]


@pytest.mark.parametrize("leaves", [True, False])
def test_who_leaves_gives_its_place_to_others(leaves: bool) -> None:
    one, other, topic = hold(), hold(), bucket(1.0, 1.0)
    assert topic.take(1, 0.0)
    push(one, b"a", buckets=(topic,))
    assert one.release(0.0) == []
    if leaves:
        one.abandon(0.0)
    push(other, b"b", buckets=(topic,))
    assert timed(other) == [(1.0 if leaves else 2.0, b"b")]


def test_an_expired_message_gives_its_place_to_others() -> None:
    one, topic = hold(), bucket(1.0, 1.0)
    assert topic.take(1, 0.0)
    push(one, b"a", buckets=(topic,), expires_s=0.5)
    push(one, b"b", buckets=(topic,))
    assert timed(one) == [(1.0, b"b")]


def test_who_leaves_loses_what_nobody_will_send_again() -> None:
    one = hold(1.0)
    push(one, b"a", b"b", qos=0)
    push(one, b"c", qos=1)
    one.push_control(b"disconnect", 0.0)
    assert one.abandon(0.0) == 2
    assert (one.waiting, one.waiting_bytes, one.is_full, one.due_s(0.0)) == (0, 0, False, None)


def test_a_lifted_limit_lets_what_waits_out_at_twice_the_rate_and_faster_by_and_by() -> None:
    one = hold(TOLERANCE)
    push(one, *(bytes([letter]) for letter in b"abcdefghijklmnopqrstuvwxyz"))
    one.release(0.0)
    one.limit(None, 0.0)
    one.limit(None, 0.1)  # said again, it changes nothing
    found = [at_s for at_s, _ in timed(one)]
    per_period = [sum(DOUBLE_S * n < at_s <= DOUBLE_S * (n + 1) for at_s in found) for n in range(3)]
    assert per_period == [6, 12, 8]
    assert one.credits.rate_per_s is None, "with the last of them the limit is gone"


def test_a_lifted_limit_is_gone_at_once_where_nothing_waits() -> None:
    one = hold(1.0)
    one.limit(None, 0.0)
    assert one.passes(1000, 1000, 0.0)


def test_a_limit_that_comes_back_while_the_rest_drains_counts() -> None:
    one = hold(1.0)
    push(one, *(b"a" for _ in range(20)))
    one.limit(None, 0.0)
    assert len(one.release(3.5)) == BURST
    one.limit(1.0 / TOLERANCE, 3.5)
    later = [at_s for at_s, _ in timed(one, now_s=3.5)]
    assert later[-1] - later[0] == pytest.approx(16.0, abs=1.0)
    assert one.credits.rate_per_s == pytest.approx(1.0 / TOLERANCE)
