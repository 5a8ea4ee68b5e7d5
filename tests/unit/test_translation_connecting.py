"""An MQTT 5 client connects to a 3.1.1 broker: its session, its credentials, and what it is announced."""

import msgspec
import pytest
from translating import LIMITS, Held, client, packets_of, plan

from tidegate.gateway.connection.connect_plan import Limits
from tidegate.gateway.connection.translation import Translation
from tidegate.mqtt import properties as p
from tidegate.mqtt.packets import (
    Connack,
    Connect,
    Will,
)
from tidegate.mqtt.properties import NEVER_EXPIRES, Properties
from tidegate.mqtt.violations import Violation


@pytest.mark.parametrize(
    ("clean", "expiry_s", "clean_upstream", "deletes_first", "delete_after_s"),
    [
        pytest.param(True, 0, True, False, None, id="a session for one connection is a clean one"),
        pytest.param(True, 30, False, True, 30, id="anew and to be kept: deleted before, and when it has expired"),
        pytest.param(True, NEVER_EXPIRES, False, True, None, id="anew and kept for ever"),
        pytest.param(False, 0, False, False, 0, id="resumed for the last time: deleted when the client leaves"),
        pytest.param(False, 30, False, False, 30, id="resumed and kept for a while"),
        pytest.param(False, NEVER_EXPIRES, False, False, None, id="resumed and kept for ever"),
    ],
)
def test_a_session_begins_and_ends_as_the_client_says(
    clean: bool, expiry_s: int, clean_upstream: bool, deletes_first: bool, delete_after_s: int | None
) -> None:
    planned = plan(client(clean=clean, session_expiry=expiry_s))
    (upstream,), (deletion,) = packets_of(planned.packet, 4), packets_of(planned.deletion, 4)
    assert upstream == Connect(version=4, client_id=b"pump-7", clean=clean_upstream, keep_alive_s=60)
    assert (deletion.client_id, deletion.clean, planned.deletes_first) == (b"pump-7", True, deletes_first)
    assert Translation(planned, LIMITS, bytes).delete_session_after_s == delete_after_s


def test_will_and_credentials_go_on_without_properties() -> None:
    will = Will(topic=b"gone", payload=b"x", qos=1, retain=True, properties=Properties(values={p.WILL_DELAY: 5}))
    connect = msgspec.structs.replace(client(), will=will, user=b"anna", password=b"secret")
    planned = plan(connect)
    (upstream,), (deletion,) = packets_of(planned.packet, 4), packets_of(planned.deletion, 4)
    assert upstream.will == Will(topic=b"gone", payload=b"x", qos=1, retain=True)
    assert (upstream.user, upstream.password) == (deletion.user, deletion.password) == (b"anna", b"secret")
    assert deletion.will is None
    assert "secret" not in repr(planned)
    assert "anna" not in repr(planned)


def test_a_password_alone_gets_the_user_name_that_311_wants() -> None:
    (upstream,) = packets_of(plan(msgspec.structs.replace(client(), password=b"token")).packet, 4)
    assert (upstream.user, upstream.password) == (b"", b"token")


def test_extended_authentication_is_refused() -> None:
    connect = msgspec.structs.replace(client(), properties=Properties(values={p.AUTHENTICATION_METHOD: b"SCRAM"}))
    with pytest.raises(Violation) as refused:
        plan(connect)
    assert refused.value.code == 0x8C


ANNOUNCED = {
    p.RECEIVE_MAX: 3,
    p.PACKET_BYTES_MAX: 10_000,
    p.TOPIC_ALIAS_MAX: 2,
    p.SUBSCRIPTION_IDENTIFIERS_AVAILABLE: 0,
    p.SHARED_AVAILABLE: 0,
}


@pytest.mark.parametrize(
    ("connect", "limits", "more"),
    [
        pytest.param(client(), LIMITS, {}, id="what is not available"),
        pytest.param(client(b""), LIMITS, {p.ASSIGNED_CLIENT_ID: b"gateway-1-42"}, id="the name it was given"),
        pytest.param(client(keep_alive_s=601), LIMITS, {p.SERVER_KEEP_ALIVE: 600}, id="a keep-alive over the cap"),
        pytest.param(client(keep_alive_s=0), LIMITS, {p.SERVER_KEEP_ALIVE: 600}, id="no keep-alive"),
        pytest.param(
            client(session_expiry=NEVER_EXPIRES),
            msgspec.structs.replace(LIMITS, session_expiry_s_max=3_600),
            {p.SESSION_EXPIRY: 3_600},
            id="a session expiry over the cap",
        ),
    ],
)
def test_connack_announces(connect: Connect, limits: Limits, more: dict[int, int | bytes]) -> None:
    expected = Connack(session_present=False, code=0, properties=Properties(values={**ANNOUNCED, **more}))
    assert Held(connect, limits=limits).connack == expected


def test_a_named_client_is_deleted_first_and_an_assigned_one_is_new_anyway() -> None:
    assert plan(client(session_expiry=9)).deletes_first
    assert not plan(client(b"", session_expiry=9)).deletes_first


def test_a_resumed_session_is_announced() -> None:
    assert Held(client(clean=False), session_present=True).connack.session_present


@pytest.mark.parametrize(("code", "translated"), [(1, 0x84), (2, 0x85), (3, 0x88), (4, 0x86), (5, 0x87)])
def test_a_refusal_is_said_in_the_words_of_mqtt_5_and_is_the_last_word(code: int, translated: int) -> None:
    translation = Translation(plan(client()), LIMITS, bytes)
    assert translation.wrap(bytes((0x20, 2, 0, code))) == bytes((0x20, 3, 0, translated, 0))
    assert translation.farewell(0x8B) == b""
