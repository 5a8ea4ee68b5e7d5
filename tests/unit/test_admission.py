"""Clients that all come at once are connected as fast as brokers answer, and no faster."""

import heapq
import math
from dataclasses import dataclass
from itertools import pairwise

import pytest

from tidegate.control.placement.admission import PAUSE_S_MAX, WINDOW_START, Admission


def admission(window_max: int = 64, wait_s_max: float = 30.0, clients: int = 0) -> Admission[int]:
    one = Admission[int](window_max, wait_s_max)
    for client in range(clients):
        one.ask(client, 0.0)
    return one


@dataclass
class Broker:
    """One client after the other, each for ``1 / rate_per_s``; the way there and back takes ``away_s``."""

    rate_per_s: float
    away_s: float
    up_from_s: float = 0.0
    free_s: float = 0.0

    def answers_s(self, now_s: float) -> tuple[float, bool]:
        if now_s < self.up_from_s:
            return now_s + 0.001, False
        self.free_s = max(self.free_s, now_s) + 1 / self.rate_per_s
        return self.free_s + self.away_s, True


@dataclass
class Storm:
    """What came out of all clients asking at once."""

    all_back_s: float
    order: list[int]
    connecting_max: int
    tries: int


def storm(broker: Broker, clients: int, window_max: int = 64) -> Storm:
    found = Storm(0.0, [], 0, 0)
    one = admission(window_max, math.inf, clients)
    under_way: list[tuple[float, int, float, bool]] = []
    now_s = 0.0
    while one.waiting or one.connecting:
        for client in one.ready(now_s):
            found.tries += 1
            answers_s, ok = broker.answers_s(now_s)
            heapq.heappush(under_way, (answers_s, client, now_s, ok))
        found.connecting_max = max(found.connecting_max, one.connecting)
        due_s = one.due_s(now_s)
        if under_way and (due_s is None or under_way[0][0] <= due_s):
            now_s, client, began_s, ok = heapq.heappop(under_way)
            one.answered(client, now_s - began_s, ok, now_s)
            if ok:
                found.order.append(client)
        else:
            assert due_s is not None
            now_s = due_s
    found.all_back_s = now_s
    return found


@pytest.mark.parametrize("away_s", [0.0, 0.001, 0.005, 0.02])
def test_a_storm_is_over_nearly_as_fast_as_the_broker_accepts(away_s: float) -> None:
    found = storm(Broker(2500, away_s), clients=2000)
    assert found.all_back_s <= 1.5 * 2000 / 2500
    assert found.order == list(range(2000))
    assert found.connecting_max <= 64


def test_a_slow_broker_is_not_asked_for_more_than_it_can_do() -> None:
    """Sixty at a time would each wait for three seconds; the window stays at a few times what keeps it busy."""
    found = storm(Broker(20, 0.001), clients=200, window_max=1000)
    assert found.all_back_s == pytest.approx(10.0, rel=0.05)
    assert found.connecting_max <= WINDOW_START


def test_while_no_broker_answers_one_client_tries_and_all_are_back_soon_after_it_does() -> None:
    found = storm(Broker(2500, 0.001, up_from_s=10.0), clients=2000)
    assert found.all_back_s <= 10.0 + PAUSE_S_MAX + 1.5 * 2000 / 2500
    assert found.order == list(range(2000)), "who was not answered keeps its place"
    assert found.tries - 2000 <= WINDOW_START + 10 / PAUSE_S_MAX + 6


def test_nobody_waits_in_calm() -> None:
    one = admission()
    for client in range(100):
        one.ask(client, float(client))
        assert one.ready(float(client)) == [client]
        one.answered(client, 0.001, True, client + 0.001)
    assert (one.waiting, one.connecting, one.due_s(100.0)) == (0, 0, None)


def test_only_a_window_is_being_connected() -> None:
    one = admission(window_max=3, clients=5)
    assert one.ready(0.0) == [0, 1, 2]
    assert one.ready(0.0) == []
    assert (one.waiting, one.connecting) == (2, 3)
    one.answered(1, 0.001, True, 0.001)
    assert one.ready(0.001) == [3]


@pytest.mark.parametrize("client", [0, 4], ids=["being connected", "waiting"])
def test_who_hangs_up_gives_its_place_away_at_once(client: int) -> None:
    one = admission(window_max=2, clients=6)
    assert one.ready(0.0) == [0, 1]
    one.left(client)
    one.left(client)
    later = one.ready(0.0)
    one.answered(client, 0.001, True, 0.001)  # the broker's answer comes when nobody waits for it any more
    one.answered(1, 0.001, True, 0.001)
    assert later + one.ready(0.001) == ([2, 3] if client == 0 else [2])
    assert one.waiting == 2


def test_who_asks_again_after_hanging_up_is_served_from_the_end_of_the_line() -> None:
    one = admission(window_max=1, clients=3)
    assert one.ready(0.0) == [0]
    one.left(1)
    one.ask(1, 0.0)
    one.ask(2, 0.0)  # it stands in line already
    served = []
    for client in (0, 2, 1):
        one.answered(client, 0.001, True, 0.0)
        served += one.ready(0.0)
    assert served == [2, 1]


def test_who_waits_for_too_long_is_told_so_and_only_once() -> None:
    one = admission(window_max=1, wait_s_max=5.0, clients=2)
    one.ready(0.0)
    one.ask(2, 1.0)
    assert one.due_s(0.0) == 5.0
    assert one.expired(4.9) == []
    assert one.expired(5.0) == [1]
    assert one.expired(5.9) == []
    assert one.expired(6.0) == [2]
    one.answered(0, 6.0, False, 6.0)
    assert one.expired(6.0) == [0], "it had its turn, but nobody answered in time"
    assert (one.waiting, one.connecting) == (0, 0)


@pytest.mark.parametrize(
    ("took_s", "ok", "grows"),
    [
        pytest.param(0.010, True, True, id="as fast as the best"),
        pytest.param(0.039, True, True, id="less than four times as long"),
        pytest.param(0.050, True, False, id="five times as long"),
        pytest.param(5.0, False, False, id="not at all"),
    ],
)
def test_the_window_follows_the_answers(took_s: float, ok: bool, grows: bool) -> None:
    one = admission(clients=3)
    one.ready(0.0)
    one.answered(0, 0.010, True, 0.010)
    before = one.window
    one.answered(1, took_s, ok, took_s)
    assert (one.window > before) == grows
    shrunk = one.window
    one.answered(2, took_s, ok, took_s)
    assert grows or one.window == shrunk, "what was under way together counts once"


def test_an_answer_within_the_gateways_own_noise_is_never_slow() -> None:
    one = admission(clients=2)
    one.ready(0.0)
    one.answered(0, 0.0002, True, 0.0002)
    before = one.window
    one.answered(1, 0.019, True, 0.019)
    assert one.window > before


def test_the_window_stays_within_its_bounds() -> None:
    one = admission(window_max=5, clients=400)
    now_s = 0.0
    for round_ in range(200):
        for client in one.ready(now_s):
            assert one.connecting <= 5
            now_s += 0.01
            # Slow and fast by turns, and sometimes nobody answers although others were answered.
            one.answered(client, 0.001 if round_ % 20 < 10 else 1.0, round_ % 7 != 0, now_s)
            assert 1.0 <= one.window <= 5.0
        now_s += 1.0
    assert (one.waiting, one.connecting) == (0, 0)


def test_pauses_grow_while_nobody_answers() -> None:
    one = admission(clients=50)
    turns = one.ready(0.0)
    for client in turns:
        one.answered(client, 0.001, False, 0.001)
    tries, now_s = [], 0.001
    while now_s < 5:
        due_s = one.due_s(now_s)
        assert due_s is not None
        now_s = due_s
        assert one.ready(now_s) == [0], "one at a time"
        assert one.ready(now_s) == []
        tries.append(now_s)
        one.answered(0, 0.0, False, now_s)
    gaps = [after - before for before, after in pairwise(tries)]
    assert all(after >= before - 1e-9 for before, after in pairwise(gaps))
    assert gaps[0] == pytest.approx(0.04)
    assert gaps[-1] == pytest.approx(PAUSE_S_MAX)
    assert one.waiting == 50
