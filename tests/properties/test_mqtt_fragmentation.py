"""However the network cuts a stream of bytes, the decoder's events are the same."""

import io

from hypothesis import given
from hypothesis import strategies as st

from tidegate.mqtt import client as mqtt
from tidegate.mqtt.fields import LENGTH_MAX, encode_frame, encode_length
from tidegate.mqtt.frames import frame_size

KNOWN = st.one_of(
    st.builds(lambda present, code: bytes((0x20, 2, present, code)), st.integers(0, 1), st.integers(0, 5)),
    st.builds(lambda packet_id: b"\x40\x02" + packet_id.to_bytes(2, "big"), st.integers(0, 65_535)),
    st.just(b"\xd0\x00"),
    st.builds(encode_frame, st.just(0x90), st.binary(min_size=3, max_size=8)),
    st.builds(mqtt.encode_publish, st.binary(min_size=1, max_size=20), st.binary(max_size=200), retain=st.booleans()),
)
TOO_LONG = st.integers(1, 300).map(lambda more: encode_frame(0x30, bytes(mqtt.BODY_BYTES_MAX + more)))
SKIPPED = TOO_LONG | st.builds(encode_frame, st.sampled_from([0x32, 0x34, 0x38, 0x50, 0xB0]), st.binary(max_size=300))
STREAMS = st.lists(KNOWN | SKIPPED, max_size=30).map(b"".join)


def in_pieces(data: bytes, sizes: list[int]) -> list[mqtt.Event]:
    decoder, stream, events = mqtt.Decoder(), io.BytesIO(data), []
    for size in sizes:
        events += decoder.receive(stream.read(size))
    return events + decoder.receive(stream.read())


@given(STREAMS, st.lists(st.integers(0, 40), max_size=100))
def test_packets_cut_anywhere_give_the_same_events(data: bytes, sizes: list[int]) -> None:
    assert in_pieces(data, sizes) == mqtt.Decoder().receive(data) == in_pieces(data, [1] * len(data))


@given(STREAMS, st.binary(max_size=60), st.lists(st.integers(0, 40), max_size=100))
def test_any_bytes_cut_anywhere_give_the_same_events(valid: bytes, junk: bytes, sizes: list[int]) -> None:
    data = valid + junk + valid
    events = mqtt.Decoder().receive(data)
    assert in_pieces(data, sizes) == events == in_pieces(data, [1] * len(data))
    assert not any(isinstance(event, mqtt.ProtocolViolated) for event in events[:-1])


@given(st.lists(KNOWN, max_size=30), st.lists(SKIPPED, max_size=30), st.randoms())
def test_skipped_packets_change_nothing(known: list[bytes], skipped: list[bytes], order) -> None:
    mixed = list(known)
    for each in skipped:
        mixed.insert(order.randint(0, len(mixed)), each)
    assert mqtt.Decoder().receive(b"".join(mixed)) == mqtt.Decoder().receive(b"".join(known))


@given(st.binary(min_size=1, max_size=300), st.binary(max_size=3_000), st.booleans())
def test_a_message_at_qos_0_arrives_as_it_was_sent(topic: bytes, payload: bytes, retain: bool) -> None:
    sent = mqtt.encode_publish(topic, payload, retain=retain)
    assert mqtt.Decoder().receive(sent) == [mqtt.MessageReceived(topic, payload)]


@given(st.integers(0, LENGTH_MAX))
def test_lengths_survive_encoding(length: int) -> None:
    encoded = encode_length(length)
    assert frame_size(b"\x30" + encoded, 0) == (1 + len(encoded), 1 + len(encoded) + length)
