"""Properties of MQTT 5: read, counted, refused, and never shown."""

import pytest

from tidegate.mqtt import properties
from tidegate.mqtt.properties import EMPTY, Properties, encode_properties, parse_properties
from tidegate.mqtt.violations import Violation

EVERYWHERE = properties.IN_PUBLISH | properties.IN_WILL | properties.IN_CONNECT | properties.IN_CONNACK


@pytest.mark.parametrize(
    ("written", "held"),
    [
        pytest.param(b"\0", EMPTY, id="none"),
        pytest.param(b"\2\x01\1", Properties(values={properties.PAYLOAD_FORMAT: 1}), id="one byte"),
        pytest.param(b"\3\x21\x01\x00", Properties(values={properties.RECEIVE_MAX: 256}), id="two bytes"),
        pytest.param(b"\5\x02\0\0\1\0", Properties(values={properties.MESSAGE_EXPIRY: 256}), id="four bytes"),
        pytest.param(b"\5\x09\0\2\0\xff", Properties(values={properties.CORRELATION_DATA: b"\0\xff"}), id="any bytes"),
        pytest.param(b"\5\x03\0\2ab", Properties(values={properties.CONTENT_TYPE: b"ab"}), id="a text"),
        pytest.param(b"\3\x0b\x80\x01", Properties(identifiers=(128,)), id="a variable length"),
        pytest.param(
            b"\x0c" + b"\x26\0\1b\0\0" + b"\x26\0\1a\0\0",
            Properties(user=((b"b", b""), (b"a", b""))),
            id="pairs in their order",
        ),
    ],
)
def test_properties_are_read_and_written(written: bytes, held: Properties) -> None:
    assert parse_properties(b"x" + written + b"more", 1, EVERYWHERE, 10) == (held, 1 + len(written))
    assert encode_properties(held) == written


@pytest.mark.parametrize(
    ("written", "code"),
    [
        pytest.param(b"", 0x81, id="no length"),
        pytest.param(b"\x80", 0x81, id="half a length"),
        pytest.param(b"\x80\0", 0x81, id="a length longer than needed"),
        pytest.param(b"\xff\xff\xff\xff\x7f", 0x81, id="a length of five bytes"),
        pytest.param(b"\3\x01", 0x81, id="less than announced"),
        pytest.param(b"\1\x01\1", 0x81, id="a value behind the end"),
        pytest.param(b"\4\x09\0\2x" + b"y", 0x81, id="bytes behind the end"),
        pytest.param(b"\4\x09\0\2x", 0x81, id="bytes that are not there"),
        pytest.param(b"\5\x26\0\1a\0", 0x81, id="half a pair"),
        pytest.param(b"\3\x0b\x80\0", 0x81, id="an identifier longer than needed"),
        pytest.param(b"\2\x0b\0", 0x82, id="subscription identifier 0"),
        pytest.param(b"\1\x00", 0x81, id="a property that does not exist"),
        pytest.param(b"\1\x7f", 0x81, id="another property that does not exist"),
        pytest.param(b"\2\x81\x00", 0x81, id="an identifier of two bytes"),
        pytest.param(b"\4\x01\0\x01\0", 0x82, id="twice the same"),
        pytest.param(b"\2\x01\2", 0x82, id="neither no nor yes"),
        pytest.param(b"\2\x24\2", 0x82, id="a maximum QoS of 2 is not said"),
        pytest.param(b"\3\x21\0\0", 0x82, id="a receive maximum of 0"),
        pytest.param(b"\5\x27\0\0\0\0", 0x82, id="a maximum packet size of 0"),
        pytest.param(b"\3\x23\0\0", 0x94, id="topic alias 0"),
        pytest.param(b"\4\x03\0\1\xff", 0x81, id="a text that is not UTF-8"),
        pytest.param(b"\4\x03\0\1\0", 0x81, id="a text with NUL"),
        pytest.param(b"\x37" + b"\x26\0\0\0\0" * 11, 0x97, id="one more than allowed"),
        pytest.param(b"\x16" + b"\x0b\1" * 11, 0x97, id="one identifier more than allowed"),
    ],
)
def test_bad_properties_are_refused(written: bytes, code: int) -> None:
    with pytest.raises(Violation) as caught:
        parse_properties(written, 0, EVERYWHERE, 10)
    assert caught.value.code == code


def test_a_property_is_allowed_only_where_it_belongs() -> None:
    for identifier, allowed in ((b"\x01", properties.IN_CONNECT), (b"\x17", properties.IN_PUBLISH)):
        with pytest.raises(Violation, match="property not allowed"):
            parse_properties(b"\2" + identifier + b"\1", 0, allowed, 10)


def test_values_are_not_shown() -> None:
    held = Properties(values={properties.AUTHENTICATION_DATA: b"secret"}, user=((b"secret", b"secret"),))
    assert "secret" not in f"{held} {held!r}"
    assert "0x16" in repr(held)
