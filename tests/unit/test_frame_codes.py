"""The code that a device hears for a broken packet: from the scanner and from the parser the same.

Malformed (0x81) is what cannot be read, a protocol error (0x82) what can be read and is not allowed. Where the standard
leaves it open, brokers' own suites decide: an identifier of 0 is malformed in SUBSCRIBE and UNSUBSCRIBE alone.
"""

import pytest

from tidegate.mqtt.fields import encode_frame
from tidegate.mqtt.frames import FrameScanner
from tidegate.mqtt.packets import PUBACK, PUBCOMP, PUBLISH, PUBREC, PUBREL, SUBSCRIBE, UNSUBSCRIBE, parse
from tidegate.mqtt.violations import Violation

MALFORMED, PROTOCOL_ERROR, TOPIC_INVALID = 0x81, 0x82, 0x90
# name, first byte, body in MQTT 5, code
BROKEN = [
    ("packet type 0", 0x00, b"", PROTOCOL_ERROR),
    ("packet type 0 with a flag", 0x08, b"", PROTOCOL_ERROR),
    ("packet type 0 with content", 0x00, b"\0", PROTOCOL_ERROR),
    ("PUBLISH at QoS 1 with identifier 0", PUBLISH | 2, b"\0\1t\0\0\0", PROTOCOL_ERROR),
    ("PUBLISH at QoS 2 with identifier 0", PUBLISH | 4, b"\0\1t\0\0\0", PROTOCOL_ERROR),
    ("PUBLISH with half an identifier", PUBLISH | 2, b"\0\1t\0", MALFORMED),
    ("PUBACK of 0", PUBACK, b"\0\0", PROTOCOL_ERROR),
    ("PUBACK of 0 with a code", PUBACK, b"\0\0\0", PROTOCOL_ERROR),
    ("PUBREC of 0", PUBREC, b"\0\0", PROTOCOL_ERROR),
    ("PUBREL of 0", PUBREL | 2, b"\0\0", PROTOCOL_ERROR),
    ("PUBCOMP of 0", PUBCOMP, b"\0\0", PROTOCOL_ERROR),
    ("PUBACK of half an identifier", PUBACK, b"\0", MALFORMED),
    ("PUBREL of nothing", PUBREL | 2, b"", MALFORMED),
    ("SUBSCRIBE with identifier 0", SUBSCRIBE | 2, b"\0\0\0\0\1t\0", MALFORMED),
    ("UNSUBSCRIBE with identifier 0", UNSUBSCRIBE | 2, b"\0\0\0\0\1t", MALFORMED),
    ("U+0000 in a topic", PUBLISH, b"\0\3a\0b\0", MALFORMED),
    ("U+0000 and a wildcard in a topic", PUBLISH, b"\0\3a\0#\0", MALFORMED),
    ("a surrogate in a topic", PUBLISH, b"\0\3\xed\xa0\x80\0", MALFORMED),
    ("a wildcard in a topic", PUBLISH, b"\0\3a/+\0", TOPIC_INVALID),
]


@pytest.mark.parametrize(("first", "body", "code"), [pytest.param(*row[1:], id=row[0]) for row in BROKEN])
def test_scanner_and_parser_say_the_same(first: int, body: bytes, code: int) -> None:
    scanner = FrameScanner(1_000, version=5, from_device=True)
    assert scanner.scan(encode_frame(first, body)) == b""
    with pytest.raises(Violation) as caught:
        parse(first, body, 5, properties_max=10)
    assert (scanner.code, caught.value.code) == (code, code)


@pytest.mark.parametrize("data", [b"\x00", b"\x0a\xc0", b"\x00\xff\xff\xff\xff\x01", b"\x00\xff\xff\xff\x7f"])
def test_a_forbidden_type_is_said_before_its_length(data: bytes) -> None:
    scanner = FrameScanner(1_000, version=5, from_device=True)
    assert scanner.scan(data) == b""
    assert (scanner.problem, scanner.code) == ("not MQTT", PROTOCOL_ERROR)


def test_a_publish_like_the_one_before_is_held_to_the_same() -> None:
    """In MQTT 3.1.1 it is compared with the one before instead of judged again."""
    scanner = FrameScanner(1_000, version=4, from_device=True)
    good = encode_frame(PUBLISH | 2, b"\0\1t\0\1x")
    assert scanner.scan(good) == good
    assert scanner.scan(encode_frame(PUBLISH | 2, b"\0\1t\0\0x")) == b""
    assert scanner.code == PROTOCOL_ERROR
