"""The frame scanner: whatever the network cuts, the packets are the same."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from tidegate.mqtt.fields import encode_frame, encode_length
from tidegate.mqtt.frames import FrameScanner, frames_of

PACKET_BYTES_MAX = 1_000

first_bytes = st.integers(0x10, 0xEF)
bodies = st.one_of(st.binary(max_size=140), st.binary(min_size=120, max_size=600))
packets = st.builds(encode_frame, first_bytes, bodies)
streams = st.lists(packets, max_size=8)


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[start:end] for start, end in itertools.pairwise(edges)]


def scanned(chunks: list[bytes]) -> tuple[list[bytes], str]:
    """Every packet as bytes, checked against the positions that the scanner gave for it."""
    scanner, found = FrameScanner(PACKET_BYTES_MAX), []
    for chunk in chunks:
        data = scanner.scan(chunk)
        start = 0
        for first, body, end in frames_of(data):
            assert data[start] == first
            assert data[start + 1 : body] == encode_length(end - body)
            found.append(data[start:end])
            start = end
        assert start == len(data), "what is given back is whole packets only"
    return found, scanner.problem


@given(streams, st.lists(st.integers(0, 10_000), max_size=30))
def test_any_fragmentation_gives_the_same_packets(sent: list[bytes], places: list[int]) -> None:
    assert scanned(cut(b"".join(sent), places)) == (sent, "")


@given(streams)
def test_a_byte_at_a_time_gives_the_same_packets(sent: list[bytes]) -> None:
    assert scanned([bytes((byte,)) for byte in b"".join(sent)]) == (sent, "")


@given(st.lists(packets, min_size=1, max_size=5))
def test_a_chunk_of_whole_packets_is_not_copied(sent: list[bytes]) -> None:
    chunk = b"".join(sent)
    data = FrameScanner(PACKET_BYTES_MAX).scan(chunk)
    assert data is chunk


@given(streams, st.binary(max_size=400), st.lists(st.integers(0, 10_000), max_size=30))
def test_rubbish_behind_packets_is_found_wherever_it_is_cut(sent: list[bytes], more: bytes, places: list[int]) -> None:
    data = b"".join(sent) + more
    assert scanned(cut(data, places)) == scanned([data])


@given(streams, st.integers(PACKET_BYTES_MAX - 2, 268_435_455), st.lists(st.integers(0, 10_000), max_size=10))
def test_a_packet_that_is_too_large_is_refused_by_its_header(sent: list[bytes], size: int, places: list[int]) -> None:
    data = b"".join(sent) + b"\x30" + encode_length(size)
    assert scanned(cut(data, places)) == (sent, "packet too large")


@given(streams, st.sampled_from([b"\x00\x00", b"\xf0\x00", b"\x30\xff\xff\xff\xff"]))
def test_what_is_no_mqtt_is_named(sent: list[bytes], rubbish: bytes) -> None:
    assert scanned([b"".join(sent) + rubbish, b"\x30\x00"]) == (sent, "not MQTT")


@given(st.integers(2, PACKET_BYTES_MAX - 3))
def test_an_unfinished_packet_is_all_that_is_held(size: int) -> None:
    scanner = FrameScanner(PACKET_BYTES_MAX)
    packet = b"\x30" + encode_length(size) + bytes(size)
    for byte in packet[:-1]:
        assert scanner.scan(bytes((byte,))) == b""
    assert scanner.unfinished == len(packet) - 1
    assert scanner.scan(packet[-1:] + packet[:3]) == packet
