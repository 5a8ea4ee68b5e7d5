"""What counts as a clean end of an attack, how a gateway's last words are read, and what the checks make of it."""

import pytest

from tidegate.mqtt.frames import frame_size
from tidegate_bench.hostile import sink
from tidegate_bench.hostile.attacking import AttackResult
from tidegate_bench.hostile.attacks import Attack, attacks
from tidegate_bench.hostile.checks import Round, checks
from tidegate_bench.hostile.packets import ANYBODY, connect
from tidegate_bench.hostile.words import mqtt_words, tls_words, websocket_words
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


def test_the_checks_find_a_dirty_close_and_others_that_wait() -> None:
    calm, slow = (0.001,) * 100, (0.001,) * 90 + (0.010,) * 10
    clean = AttackResult(name="good", attempts=4, clean=4, seconds_max=1.0, endings={})
    dirty = AttackResult(name="bad", attempts=4, clean=3, seconds_max=1.0, endings={})
    never = AttackResult(name="never", attempts=0, clean=0, seconds_max=0.0, endings={})
    one = Round(calm_s=calm, hostile_s=slow, calm_new_s=calm, hostile_new_s=calm)
    found = checks([one], [clean, dirty, never], memory_growth_mib=30.0, others_lost=0)
    assert {check.name: check.holds for check in found} == {
        "others_p99_ratio": False,
        "new_clients_p99_ratio": True,
        "others_lost": True,
        "memory_growth_mib": False,
        "clean_close[good]": True,
        "clean_close[bad]": False,
        "clean_close[never]": False,
    }


def test_newcomers_that_wait_are_found() -> None:
    calm, slow = (0.001,) * 100, (0.001,) * 90 + (0.010,) * 10
    one = Round(calm_s=calm, hostile_s=calm, calm_new_s=calm, hostile_new_s=slow)
    found = checks([one], [], memory_growth_mib=0.0, others_lost=0)
    assert [check.name for check in found if not check.holds] == ["new_clients_p99_ratio"]


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
