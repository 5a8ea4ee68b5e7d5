"""What a connection notes of what was acknowledged: by identity, once the broker has spoken, within bounds."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.gateway.connection.noting import CONNECTION_BYTES_MAX, RUNS_MAX, Noted, Noting, Run, joined
from tidegate.model.readings import IDENTIFIED_BYTES
from tidegate.mqtt.client import encode_publish

TOPIC = b"telemetry/d-1"


def publish(packet_id: int, payload: bytes, topic: bytes = TOPIC, qos: int = 1) -> bytes:
    packet = encode_publish(topic, payload, packet_id=packet_id)
    return bytes([packet[0] & ~6 | qos << 1]) + packet[1:]


def reading(seq: int, boot: int = 3, more: bytes = b"") -> bytes:
    return b'{"boot":%d,"seq":%d,"value":1.5%b}' % (boot, seq, more)


def puback(*packet_ids: int) -> bytes:
    return b"".join(b"\x40\x02" + each.to_bytes(2, "big") for each in packet_ids)


def told(noted: Noted) -> dict[str, list[Run]]:
    return {track.device.decode(): track.all_runs() for track in noted.take() if track.all_runs()}


def test_a_reading_is_noted_when_the_broker_has_acknowledged_it() -> None:
    noted = Noted()
    connection = Noting(noted, 4)
    connection.sent(publish(1, reading(10)) + publish(2, reading(11)) + publish(3, reading(12)))
    assert (noted.noted, told(noted)) == (0, {})
    connection.acknowledged(puback(1) + b"\xd0\x00" + puback(3))
    assert told(noted) == {"d-1": [(3, 10, 10), (3, 12, 12)]}
    connection.acknowledged(puback(2, 2, 9))
    assert told(noted) == {"d-1": [(3, 11, 11)]}, "what was told is not told again"
    assert (noted.noted, noted.nameless, noted.unwatched, noted.waiting_bytes) == (3, 0, 0, 0)


def test_devices_count_upwards_so_a_thousand_readings_are_one_run() -> None:
    noted = Noted()
    connection = Noting(noted, 4)
    for seq in range(1_000):
        connection.sent(publish(seq % 50 + 1, reading(seq)))
        connection.acknowledged(puback(seq % 50 + 1))
    assert told(noted) == {"d-1": [(3, 0, 999)]}


def test_a_message_of_qos_2_is_safe_when_it_is_complete() -> None:
    noted = Noted()
    connection = Noting(noted, 4)
    connection.sent(publish(7, reading(1), qos=2))
    connection.acknowledged(b"\x50\x02\x00\x07")
    assert told(noted) == {}
    connection.acknowledged(b"\x70\x02\x00\x07")
    assert told(noted) == {"d-1": [(3, 1, 1)]}


def test_an_identifier_that_is_used_again_stands_for_the_later_publish() -> None:
    noted = Noted()
    connection = Noting(noted, 4)
    connection.sent(publish(1, reading(1)))
    connection.sent(publish(1, reading(2, more=b',"min":1')))
    connection.acknowledged(puback(1, 1))
    assert told(noted) == {"d-1": [(3, 2, 2)]}
    assert noted.waiting_bytes == 0


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(b'{"value":1}', id="no identity"),
        pytest.param(b'{"value":1,"seq":1}', id="half of one"),
        pytest.param(b'{"value":1,"seq":-1,"boot":1}', id="negative"),
        pytest.param(b'{"value":1,"seq":%d,"boot":1}' % (2**62 + 1), id="too large"),
        pytest.param(b'{"value":1,"seq":"1","boot":1}', id="a text"),
        pytest.param(b"21.5", id="a number"),
        pytest.param(b"\xff\xfe", id="bytes"),
        pytest.param(b'{"x":' + b"[" * 900, id="too deep"),
        pytest.param(b"", id="nothing"),
        pytest.param(reading(1, more=b',"x":"' + b"x" * 70_000 + b'"'), id="too long to be a reading"),
        pytest.param(b'{"boot":1,"seq":1,"x":"' + b"x" * IDENTIFIED_BYTES + b'"}', id="long, and not a reading"),
    ],
)
def test_what_has_no_identity_is_only_counted(payload: bytes) -> None:
    noted = Noted()
    connection = Noting(noted, 4)
    connection.sent(publish(1, payload))
    connection.acknowledged(puback(1))
    assert (noted.nameless, noted.noted, told(noted)) == (1, 0, {})


def test_a_long_reading_is_noted_as_well() -> None:
    noted = Noted()
    noted.acknowledge(TOPIC, reading(1, more=b',"x":"' + b"x" * IDENTIFIED_BYTES + b'"'))
    assert told(noted) == {"d-1": [(3, 1, 1)]}


@pytest.mark.parametrize(
    ("topic", "device"),
    [
        (b"telemetry/d-1", "d-1"),
        (b"telemetry/d-1/alarm/x", "d-1"),
        ("telemetry/mühle.7".encode(), "mühle.7"),
        (b"telemetry/", None),
        (b"telemetry//x", None),
        (b"telemetry", None),
        (b"telemetri/d-1", None),
        (b"other/telemetry/d-1", None),
        (b"a", None),
    ],
)
def test_the_device_is_the_second_level_of_topics_for_readings(topic: bytes, device: str | None) -> None:
    noted = Noted()
    connection = Noting(noted, 4)
    connection.sent(publish(0x2F61, reading(1), topic))
    connection.acknowledged(puback(0x2F61))
    assert told(noted) == ({device: [(3, 1, 1)]} if device is not None else {})
    assert noted.nameless == 0


def test_the_topics_of_a_device_are_one_book() -> None:
    noted = Noted()
    for seq in range(6):
        noted.acknowledge(b"telemetry/d-1" + (b"/alarm" if seq % 2 else b""), reading(seq))
    assert told(noted) == {"d-1": [(3, 0, 5)]}


def test_publishes_at_qos_0_are_nobodys_promise() -> None:
    noted = Noted()
    connection = Noting(noted, 4)
    connection.sent(encode_publish(TOPIC, reading(1)))
    connection.acknowledged(puback(1))
    assert told(noted) == {}


def test_mqtt_5_has_properties_before_the_payload_and_may_refuse() -> None:
    noted = Noted()
    connection = Noting(noted, 5)
    head = len(TOPIC).to_bytes(2, "big") + TOPIC
    for packet_id in (1, 2, 3):
        body = head + bytes([0, packet_id, 5, 0x02, 0, 0, 0, 9]) + reading(packet_id)
        connection.sent(bytes([0x32, len(body)]) + body)
    connection.acknowledged(b"\x40\x03\x00\x01\x10" + b"\x40\x03\x00\x02\x87" + b"\x40\x02\x00\x03")
    assert told(noted) == {"d-1": [(3, 1, 1), (3, 3, 3)]}


def test_what_finds_no_room_is_counted_and_nothing_else_happens() -> None:
    noted = Noted()
    connection = Noting(noted, 4)
    large = reading(1, more=b',"x":"' + b"x" * 60_000 + b'"')
    for packet_id in range(1, 30):
        connection.sent(publish(packet_id, large))
    assert 0 < noted.unwatched < 20
    assert noted.waiting_bytes <= CONNECTION_BYTES_MAX
    other = Noting(noted, 4)
    other.sent(publish(1, reading(1)))
    connection.leave()
    connection.sent(publish(1, reading(2)))
    other.acknowledged(puback(1))
    assert noted.waiting_bytes == 0, "who has left takes no room"
    assert told(noted) == {"d-1": [(3, 1, 1)]}


def test_runs_are_bounded_and_the_rest_is_unwatched() -> None:
    noted = Noted()
    for seq in range(RUNS_MAX + 50):
        noted.acknowledge(TOPIC, reading(2 * seq))
    assert noted.noted + noted.unwatched == RUNS_MAX + 50
    assert noted.unwatched == 50
    noted.acknowledge(b"telemetry/other", reading(1))
    assert noted.unwatched == 51
    (runs,) = told(noted).values()
    assert len(runs) == RUNS_MAX
    noted.acknowledge(b"telemetry/other", reading(1))
    assert told(noted) == {"other": [(3, 1, 1)]}, "after a report there is room again"


identities = st.tuples(st.integers(0, 3), st.integers(0, 60))


@given(st.lists(identities, max_size=200), st.integers(1, 64))
def test_what_is_told_is_what_was_acknowledged(acknowledged: list[tuple[int, int]], every: int) -> None:
    """Whatever the order, however often: the runs are the set, disjoint, ascending, none beside another."""
    noted = Noted()
    for start in range(0, len(acknowledged), every):
        part = acknowledged[start : start + every]
        for boot, seq in part:
            noted.acknowledge(TOPIC, reading(seq, boot))
        runs = told(noted).get("d-1", [])
        assert {(boot, seq) for boot, low, high in runs for seq in range(low, high + 1)} == set(part)
        assert all(
            before[0] != after[0] or after[1] > before[2] + 1 for before, after in itertools.pairwise(sorted(runs))
        )
        assert runs == sorted(runs)
    assert (noted.noted, noted.unwatched) == (len(acknowledged), 0)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 40), st.integers(0, 5)), max_size=20))
def test_runs_are_joined_without_a_change_of_what_they_say(given_runs: list[tuple[int, int, int]]) -> None:
    runs = [(boot, low, low + more) for boot, low, more in given_runs]
    expected = {(boot, seq) for boot, low, high in runs for seq in range(low, high + 1)}
    found = joined(runs)
    assert {(boot, seq) for boot, low, high in found for seq in range(low, high + 1)} == expected
    assert sum(high - low + 1 for _, low, high in found) == len(expected)
