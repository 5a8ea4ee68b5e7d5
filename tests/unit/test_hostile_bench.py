"""What counts as a clean end of an attack, how a gateway's last words are read, and what the checks make of it."""

import pytest

from tidegate.mqtt.frames import frame_size
from tidegate_bench.hostile import sink
from tidegate_bench.hostile.attacking import AttackResult, as_somebody
from tidegate_bench.hostile.attacks import Attack, attacks
from tidegate_bench.hostile.besieging import Pace
from tidegate_bench.hostile.checks import Round, absence_checks, checks, pooled
from tidegate_bench.hostile.packets import ANYBODY, PASSWORD, connect
from tidegate_bench.hostile.poisons import LONG_USER, ODD_USER, poisons
from tidegate_bench.hostile.sieges import GIANT_BYTES, greeting, sieges
from tidegate_bench.hostile.waits import OVERDUE_S, Sample, Waits, together, with_unbegun
from tidegate_bench.hostile.words import last_words, mqtt_words, tls_words, websocket_words
from tidegate_bench.outage import share_off

ATTACKS = attacks("user", "password")


@pytest.mark.parametrize(
    ("data", "version", "words"),
    [
        (b"", 4, ""),
        (b"\x20\x02\x00\x01", 4, "CONNACK 1"),
        (b"\x20\x03\x00\x84\x00", 5, "CONNACK 0x84"),
        (b"\x20\x03\x00\x00\x00\xe0\x02\x82\x00", 5, "DISCONNECT 0x82"),
        (b"\x20\x02\x00\x00\xe0\x00", 5, "DISCONNECT 0x00"),
        (b"\x20\x02\x00\x00\xd0\x00\xd0\x00", 4, "PINGRESP"),
        (b"\x20\x02\x00\x00\x40\x02\x00\x01", 4, ""),
        (b"\xe0", 5, ""),
    ],
)
def test_last_words_of_mqtt(data: bytes, version: int, words: str) -> None:
    assert mqtt_words(data, version) == words


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", ""),
        (b"HTTP/1.1 400 Bad Request\r\n\r\nno", "HTTP 400"),
        (b"HTTP/1.1 101 Switching\r\n\r\n", ""),
        (b"HTTP/1.1 101 Switching\r\n\r\n\x82\x02ab\x88\x02\x03\xeb", "close 1003"),
        (b"HTTP/1.1 101 Switching\r\n\r\n\x82\x7e\x00\x80" + bytes(128) + b"\x88\x00", "close"),
    ],
)
def test_last_words_of_a_websocket(data: bytes, words: str) -> None:
    assert websocket_words(data) == words


def test_last_words_of_tls() -> None:
    assert [tls_words(data) for data in (b"\x15\x03\x01", b"\x16\x03\x01", b"")] == ["TLS alert", "TLS", ""]


@pytest.mark.parametrize(
    ("attack", "closed", "seconds", "words", "clean"),
    [
        (Attack(name="a", within_s=2.0), True, 1.0, "", True),
        (Attack(name="a", within_s=2.0), True, 3.0, "", False),
        (Attack(name="a", within_s=2.0), False, 2.0, "", False),
        (Attack(name="a", words=("CONNACK 1",)), True, 0.1, "", False),
        (Attack(name="a", ends="stays", words=("PINGRESP",)), False, 2.0, "PINGRESP", True),
        (Attack(name="a", ends="stays", words=("PINGRESP",)), True, 0.1, "PINGRESP", False),
        (Attack(name="a", ends="stays", words=("PINGRESP",)), False, 2.0, "", False),
    ],
)
def test_a_clean_end(attack: Attack, closed: bool, seconds: float, words: str, clean: bool) -> None:
    assert attack.is_clean(closed, seconds, words) is clean


def test_attacks_have_names_of_their_own_and_openings_in_good_order() -> None:
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS)
    for attack in ATTACKS:
        if attack.listener == "mqtt" and attack.opening:
            assert frame_size(attack.opening, 0)[1] == len(attack.opening)
            assert attack.opening == connect(
                attack.version, "user", "password", keep_alive_s=int.from_bytes(attack.opening[10:12], "big")
            )
            assert attack.opening.count(ANYBODY) == 1


CALM, SLOW = (0.001,) * 100, (0.001,) * 90 + (0.010,) * 10


def round_of(
    *, delays_s: tuple[float, ...] = CALM, connects_s: tuple[float, ...] = CALM, lost: int = 0, calm_lost: int = 0
) -> Round:
    """Others meet this under attack; in calm nothing is slow."""
    return Round(
        calm=Sample(delays_s=CALM, connects_s=CALM, lost=calm_lost),
        hostile=Sample(delays_s=delays_s, connects_s=connects_s, lost=lost),
    )


def test_the_checks_find_a_dirty_close_and_others_that_wait() -> None:
    clean = AttackResult(name="good", attempts=4, clean=4, seconds_max=1.0, endings={})
    dirty = AttackResult(name="bad", attempts=4, clean=3, seconds_max=1.0, endings={})
    never = AttackResult(name="never", attempts=0, clean=0, seconds_max=0.0, endings={})
    found = checks([round_of(delays_s=SLOW)], [clean, dirty, never], memory_growth_mib=30.0)
    assert {check.name: check.holds for check in found} == {
        "others_p99_ratio": False,
        "new_clients_p99_ratio": True,
        "others_lost": True,
        "memory_growth_mib": False,
        "clean_close[good]": True,
        "clean_close[bad]": False,
        "clean_close[never]": False,
    }


@pytest.mark.parametrize(
    ("one", "failed"),
    [
        pytest.param(round_of(), [], id="nobody notices anything"),
        pytest.param(round_of(connects_s=SLOW), ["new_clients_p99_ratio"], id="newcomers wait"),
        pytest.param(round_of(connects_s=()), ["new_clients_p99_ratio"], id="no newcomer is taken on at all"),
        pytest.param(round_of(delays_s=()), ["others_p99_ratio"], id="nothing is acknowledged at all"),
        pytest.param(round_of(lost=1), ["others_lost"], id="somebody else is closed"),
        pytest.param(round_of(calm_lost=1), ["others_lost"], id="it has not recovered afterwards"),
    ],
)
def test_what_others_notice_fails_the_check_that_is_named_for_it(one: Round, failed: list[str]) -> None:
    found = checks([one], [], memory_growth_mib=0.0)
    assert [check.name for check in found if not check.holds] == failed


def test_rounds_are_held_together() -> None:
    every = pooled([round_of(lost=1), round_of(delays_s=SLOW, lost=2)])
    assert len(every.hostile.delays_s) == len(CALM) + len(SLOW)
    assert every.lost == 3
    assert every.p99_ratio == pytest.approx(10.0)


def test_a_row_has_a_ratio_for_http_only_where_somebody_came_by_it() -> None:
    by_http = Round(
        calm=Sample(delays_s=CALM, connects_s=CALM, http_s=CALM),
        hostile=Sample(delays_s=CALM, connects_s=CALM, http_s=SLOW),
    )
    assert by_http.row()["http_p99_ratio"] == pytest.approx(10.0)
    assert "http_p99_ratio" not in round_of().row()


@pytest.mark.parametrize(
    ("kept", "alarm", "holds"),
    [
        (10, "the last that of client 'absent'", [True, True]),
        (11, "the last that of client 'absent'", [False, True]),
        (0, None, [True, False]),
        (0, "the last that of client 'other'", [True, False]),
    ],
)
def test_an_absent_session_keeps_little_and_is_named(kept: int, alarm: str | None, holds: list[bool]) -> None:
    assert [check.holds for check in absence_checks(kept, 10, alarm, "absent")] == holds


# -- who waits


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_a_wait_counts_once_and_one_that_lasts_counts_with_what_it_took_so_far() -> None:
    clock = Clock()
    waits = Waits(10.0, clock)
    with waits.timed("short"):
        clock.now_s += 0.25
    with waits.timed("long"):
        clock.now_s += 2 * OVERDUE_S
        assert waits.taken() == (0.25, 2 * OVERDUE_S)
        assert waits.taken() == (2 * OVERDUE_S,)
    assert waits.taken() == (2 * OVERDUE_S,)
    assert waits.taken() == ()


@pytest.mark.parametrize(
    ("took_s", "waits_s"),
    [
        pytest.param(0.01, [0.01], id="a short wait is one"),
        pytest.param(0.35, [0.35, 0.25, 0.15, 0.05], id="in a long one others would have been begun"),
    ],
)
def test_a_stall_counts_as_often_as_somebody_would_have_waited(took_s: float, waits_s: list[float]) -> None:
    assert list(with_unbegun(took_s, 0.1)) == pytest.approx(waits_s)


def test_a_siege_in_which_next_to_nothing_is_served_shows_beside_many_good_ones() -> None:
    clock = Clock()
    waits = Waits(0.1, clock)
    with waits.timed("somebody"):
        clock.now_s += 3.0
    stalled = Round(
        calm=Sample(delays_s=CALM, connects_s=CALM), hostile=Sample(delays_s=waits.taken(), connects_s=CALM)
    )
    assert pooled([stalled, *[round_of()] * 9]).p99_ratio > 100


def test_a_wait_that_fails_is_none() -> None:
    waits = Waits(10.0, Clock())
    with pytest.raises(ConnectionResetError), waits.timed("closed"):
        raise ConnectionResetError
    assert waits.taken() == ()


def test_samples_together_lose_nothing() -> None:
    found = together([Sample(delays_s=(1.0,), lost=1), Sample(connects_s=(2.0,), http_s=(3.0,), lost=2)])
    assert found == Sample(delays_s=(1.0,), connects_s=(2.0,), http_s=(3.0,), lost=3)


# -- sieges


@pytest.mark.parametrize(
    ("per_s", "burst", "waits_s"),
    [
        pytest.param(0.0, 3, [0.0] * 6, id="without a rate nobody waits"),
        pytest.param(10.0, 2, [0.0, 0.0, 0.0, 0.1, 0.2], id="so many at once, and then evenly"),
    ],
)
def test_the_pace_of_a_twin(per_s: float, burst: int, waits_s: list[float]) -> None:
    pace = Pace(per_s, burst)
    assert [pace.wait_s(50.0) for _ in waits_s] == pytest.approx(waits_s)


def test_a_pace_allows_no_more_after_a_rest_than_at_first() -> None:
    pace = Pace(10.0, 2)
    assert [pace.wait_s(50.0) for _ in range(4)] == pytest.approx([0.0, 0.0, 0.0, 0.1])
    assert [pace.wait_s(90.0) for _ in range(4)] == pytest.approx([0.0, 0.0, 0.0, 0.1])


def test_sieges_have_names_of_their_own_and_do_not_judge_how_they_end() -> None:
    assert len({siege.name for siege in sieges()}) == len(sieges())
    assert all(attack.ends == "either" for siege in sieges() for attack in siege.attacks)


def test_those_before_one_gateway_follow_each_other() -> None:
    gateways = [siege.gateway for siege in sieges()]
    assert gateways == sorted(gateways, key=list(dict.fromkeys(gateways)).index)


def test_poisons_are_whole_packets_with_names_of_their_own() -> None:
    found = list(poisons())
    assert len({attack.name for attack in found}) == len(found)
    assert {attack.user for attack in found} == {ANYBODY, ODD_USER, LONG_USER}
    for attack in found:
        assert frame_size(attack.sends, 0)[1] == len(attack.sends)


def test_a_poisoner_comes_with_the_password_of_the_name_that_it_says() -> None:
    asked = []

    def as_whom(name: str) -> tuple[str, str]:
        asked.append(name)
        return name, "p" * len(PASSWORD)

    odd = next(attack for attack in poisons() if attack.user == ODD_USER)
    came = as_somebody(odd, 7, as_whom)
    assert asked == ["hostile\x01000007"]
    assert came.sends.count(b"hostile\x01000007") == 2  # as client id and as user
    assert b"p" * len(PASSWORD) in came.sends
    assert len(came.sends) == len(odd.sends)


def test_giant_subscriptions_are_as_large_as_they_may_be_and_each_has_its_own_identifier() -> None:
    siege = next(siege for siege in sieges() if siege.name == "giant subscriptions")
    for attack in siege.attacks:
        identifiers, place = [], 0
        while place < len(attack.sends):
            header, size = frame_size(attack.sends, place)
            assert GIANT_BYTES - 100 < size - header <= 65_536
            identifiers.append(int.from_bytes(attack.sends[place + header : place + header + 2], "big"))
            place += size
        assert identifiers == [1, 2, 3, 4]


def test_a_greeting_is_the_beginning_of_a_handshake() -> None:
    assert greeting()[:2] == b"\x16\x03"


@pytest.mark.parametrize(
    ("listener", "data", "words"),
    [
        ("mqtt", b"\x20\x02\x00\x05", "CONNACK 5"),
        ("proxy", b"\x20\x02\x00\x05", "CONNACK 5"),
        ("http", b"HTTP/1.1 408 Request Timeout\r\n\r\n", "HTTP 408"),
        ("websocket", b"HTTP/1.1 404 Not Found\r\n\r\n", "HTTP 404"),
        ("tls", b"\x15\x03\x01", "TLS alert"),
    ],
)
def test_every_listener_has_words_of_its_own(listener: str, data: bytes, words: str) -> None:
    assert last_words(listener, data) == words


@pytest.mark.parametrize(
    ("before", "during", "off"), [([30, 10], [75, 25], 0.0), ([30, 10], [90, 10], 0.25), ([30, 10], [30, 10], 0.75)]
)
def test_newcomers_follow_the_weights(before: list[int], during: list[int], off: float) -> None:
    assert share_off(before, during) == pytest.approx(off)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (connect(4, "user", "password"), b"\x20\x02\x00\x00"),
        (connect(5, "user", "password"), b"\x20\x03\x00\x00\x00"),
        (b"GET /mqtt HTTP/1.1\r\n", b"HTTP/1.1 101 Switching Protocols\r\n\r\n"),
        (b"\x00garbage", b""),
    ],
)
def test_a_sink_lets_attackers_go_on(data: bytes, said: bytes) -> None:
    assert sink.answer(data) == said
