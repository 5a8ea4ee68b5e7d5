"""What keeps one client from being everybody's trouble: who gives way, who is not asked for again, what is not read."""

import pytest

from tidegate.gateway.disliked import PAUSE_S_MAX, PAUSE_S_MIN, Disliked
from tidegate.gateway.unknown import Unknown
from tidegate.mqtt.frames import count_filters
from tidegate.mqtt.packets import Subscribe, Unsubscribe, encode

A, B = b"a" * 16, b"b" * 16


def test_whoever_floods_loses_its_own_oldest_connection() -> None:
    unknown: Unknown[int] = Unknown(4)
    for number in range(3):
        assert unknown.add(number, "flood") is None
    assert unknown.add(10, "good") is None
    assert unknown.add(3, "flood") == 0
    assert unknown.add(11, "other") == 1
    assert unknown.add(12, "third") == 2
    unknown.discard(10)
    assert len(unknown) == 3
    assert unknown.add(13, "good") is None


def test_where_nobody_is_unknown_nobody_gives_way() -> None:
    unknown: Unknown[int] = Unknown(1)
    assert unknown.displace() is None
    unknown.add(1, "a")
    unknown.discard(1)
    unknown.discard(1)
    assert unknown.displace() is None


def test_who_is_disliked_again_and_again_waits_longer_and_begins_anew_some_time() -> None:
    disliked, now_s, pauses = Disliked(), 0.0, []
    for _ in range(8):
        disliked.add(A, now_s)
        pause_s = next(wait / 10 for wait in range(1, 10_000) if not disliked.has(A, now_s + wait / 10))
        pauses.append(round(pause_s))
        now_s += pause_s
    assert pauses == [1, 2, 4, 8, 16, 30, 30, 30]
    assert not disliked.has(B, now_s)
    now_s += 2 * PAUSE_S_MAX
    disliked.add(A, now_s)
    assert disliked.has(A, now_s + PAUSE_S_MIN / 2)
    assert not disliked.has(A, now_s + 1.5 * PAUSE_S_MIN)


def test_the_memory_of_the_disliked_is_short() -> None:
    disliked = Disliked(2)
    for number in range(5):
        disliked.add(bytes([number]) * 16, 0.0)
    assert [number for number in range(5) if disliked.has(bytes([number]) * 16, 0.5)] == [3, 4]


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize("count", [0, 1, 3, 500])
def test_filters_are_counted_without_a_look_at_them(version: int, count: int) -> None:
    filters = tuple(f"a/{number}".encode() for number in range(count))
    asked = encode(Subscribe(packet_id=1, entries=tuple((one, 1) for one in filters)), version)
    ended = encode(Unsubscribe(packet_id=1, filters=filters), version)
    header = 2 if len(asked) < 130 else 3
    assert count_filters(asked[header:], version, True) == count
    header = 2 if len(ended) < 130 else 3
    assert count_filters(ended[header:], version, False) == count


@pytest.mark.parametrize("body", [b"\x00\x01\x00", b"\x00\x01\x00\x05ab\x00", b"\x00\x01\x00\x01a"])
def test_malformed_filters_are_not_counted(body: bytes) -> None:
    assert count_filters(body, 4, True) == -1
