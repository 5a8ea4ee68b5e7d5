"""Subjects of the broker back to topics of devices: every one exactly, and remembered in bounded memory."""

from sys import getsizeof

import pyarrow as pa
import pytest

from tidegate.brokers.nats.topics import Topics, topics_of


@pytest.mark.parametrize(
    ("topic", "subject"),
    [
        ("telemetry/a", "telemetry.a"),
        ("telemetry/a.b", "telemetry.a//b"),
        ("telemetry/a//b", "telemetry.a./.b"),
        ("telemetry/a///b", "telemetry.a././.b"),
        ("telemetry/a/", "telemetry.a./"),
        ("telemetry/a//", "telemetry.a././"),
        ("telemetry//x", "telemetry./.x"),
        ("telemetry/a//.b", "telemetry.a././/b"),
        ("telemetry/a.//b", "telemetry.a//./.b"),
        ("telemetry/a/.", "telemetry.a.//"),
        ("telemetry/..", "telemetry.////"),
    ],
)
def test_a_topic_is_the_one_that_was_published_on(topic: str, subject: str) -> None:
    assert topics_of(pa.array([f"tg.3.{subject}".encode()], pa.binary())).to_pylist() == [topic]


@pytest.mark.parametrize("topic_bytes", [10, 4_000, 60_000])
def test_what_is_remembered_is_bounded_in_bytes(topic_bytes: int) -> None:
    bytes_max = 1024**2
    topics, held = Topics(bytes_max), 0
    count = 4 * bytes_max // topic_bytes
    for number in range(count):
        device = f"{number:0{topic_bytes}d}"
        assert topics[f"tg.0.telemetry.{device}".encode()] == f"telemetry/{device}"
        if number % (count // 50) == 0:
            held = max(held, getsizeof(topics) + sum(map(getsizeof, topics)) + sum(map(getsizeof, topics.values())))
    assert bytes_max / 2 < held <= bytes_max
