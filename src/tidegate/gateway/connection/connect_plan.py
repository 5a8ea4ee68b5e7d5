"""How an MQTT 5 client is connected to a 3.1.1 broker: what is sent there, and what the client is told.

A session of MQTT 5 begins anew or not (Clean Start), and ends so many seconds after its client left (Session Expiry).
A session of 3.1.1 has one flag for both. So the gateway begins one anew by connecting twice, and ends one by
connecting once more, later, with that flag.
"""

import msgspec

from tidegate.mqtt import properties
from tidegate.mqtt.packets import Connack, Connect, Will, encode
from tidegate.mqtt.properties import NEVER_EXPIRES, PACKET_BYTES_MAX_UNSAID, RECEIVE_MAX_UNSAID, Properties
from tidegate.mqtt.violations import BAD_AUTHENTICATION_METHOD, SERVER_UNAVAILABLE, UNSPECIFIED, Violation

_DELETING_S = 60  # the keep-alive of a connection that only deletes a session
# What 3.1.1 says in CONNACK, as MQTT 5 says it.
_CODES = {0: 0x00, 1: 0x84, 2: 0x85, 3: 0x88, 4: 0x86, 5: 0x87}
# What a server says when it ends a connection, and may not say in CONNACK.
_NOT_IN_CONNACK = {
    **dict.fromkeys((0x8D, 0x8E, 0x8F, 0x93, 0x94, 0x96, 0x98, 0x9E, 0xA0, 0xA1, 0xA2), UNSPECIFIED),
    0x8B: SERVER_UNAVAILABLE,
}


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What one client may take. It is told of what it has to know."""

    packet_bytes_max: int
    topic_bytes_max: int
    properties_max: int
    keep_alive_s_max: int
    receive_max: int = 1_024
    topic_alias_max: int = 16
    session_expiry_s_max: int = NEVER_EXPIRES
    filters_bytes_max: int = 65_536  # of one SUBSCRIBE or UNSUBSCRIBE: each filter has to be looked at
    filters_max: int = 1_024
    waiting_bytes_max: int = 1024**2  # of messages that wait for a client's acknowledgements
    connect_bytes_max: int = 65_536
    connect_s_max: float = 10.0  # until its CONNECT is there
    broker_s_max: float = 5.0  # until a broker has answered it
    held_bytes_max: int = 65_536
    hold_s_max: float = 30.0
    credits_max: float = 50_000.0
    credits_per_s: float = 10_000.0
    enforces_advice: bool = True
    tells_quota: bool = False  # a publish that would wait is refused, in the words of MQTT 5


class ConnectPlan(msgspec.Struct, frozen=True, kw_only=True):
    """``packet`` and ``deletion`` are CONNECT packets of 3.1.1. The latter deletes the session: send it, wait for its
    CONNACK, and leave. ``deletes_first`` says that this has to happen before ``packet`` is sent.
    """

    client_id: bytes
    packet: bytes
    deletion: bytes
    deletes_first: bool
    keeps_session: bool  # at the broker, once the client has left: it has to be deleted there some time
    session_expiry_s: int
    keep_alive_s: int
    announced: Properties  # in CONNACK
    receive_max: int  # the client's own limits
    packet_bytes_max: int
    takes_properties: bool  # on acknowledgements

    def __repr__(self) -> str:
        """Without the packets: credentials are in them."""
        return f"ConnectPlan({self.client_id!r}, session_expiry_s={self.session_expiry_s})"


def plan_connect(connect: Connect, *, assigned: bytes, limits: Limits) -> ConnectPlan:
    """What a CONNECT of MQTT 5 asks of a 3.1.1 broker. ``assigned`` is what a client that brought no identifier is told
    instead; the broker knows it as ``connect`` has it."""
    asked = connect.properties
    if properties.AUTHENTICATION_METHOD in asked.values:
        raise Violation(BAD_AUTHENTICATION_METHOD, "extended authentication")
    asked_expiry_s = asked.number(properties.SESSION_EXPIRY, 0)
    session_expiry_s = min(asked_expiry_s, limits.session_expiry_s_max)
    keep_alive_s = min(connect.keep_alive_s or limits.keep_alive_s_max, limits.keep_alive_s_max)
    keeps_session = not connect.clean or session_expiry_s > 0
    upstream = _upstream(connect, clean=not keeps_session, keep_alive_s=keep_alive_s)
    deletion = msgspec.structs.replace(upstream, clean=True, will=None, keep_alive_s=_DELETING_S)
    told: dict[int, int | bytes] = {}
    if assigned:
        told[properties.ASSIGNED_CLIENT_ID] = assigned
    if session_expiry_s != asked_expiry_s:
        told[properties.SESSION_EXPIRY] = session_expiry_s
    if keep_alive_s != connect.keep_alive_s:
        told[properties.SERVER_KEEP_ALIVE] = keep_alive_s
    return ConnectPlan(
        client_id=connect.client_id,
        packet=encode(upstream, 4),
        deletion=encode(deletion, 4),
        deletes_first=connect.clean and keeps_session and not assigned,
        keeps_session=keeps_session,
        session_expiry_s=session_expiry_s,
        keep_alive_s=keep_alive_s,
        announced=Properties(values={**_announced(limits), **told}),
        receive_max=asked.number(properties.RECEIVE_MAX, RECEIVE_MAX_UNSAID),
        packet_bytes_max=asked.number(properties.PACKET_BYTES_MAX, PACKET_BYTES_MAX_UNSAID),
        takes_properties=bool(asked.number(properties.REQUEST_PROBLEM_INFORMATION, 1)),
    )


def connack_for(plan: ConnectPlan, answer: Connack) -> Connack:
    """A 3.1.1 broker's answer, in the words of MQTT 5."""
    if answer.code:
        return Connack(session_present=False, code=_CODES.get(answer.code, UNSPECIFIED))
    return Connack(session_present=answer.session_present, code=0, properties=plan.announced)


def refusal_for(code: int) -> Connack:
    """Why a client is not connected, by any code that could end its connection later."""
    return Connack(session_present=False, code=_NOT_IN_CONNACK.get(code, code))


def _upstream(connect: Connect, *, clean: bool, keep_alive_s: int) -> Connect:
    will = connect.will
    return Connect(
        version=4,
        client_id=connect.client_id,
        clean=clean,
        keep_alive_s=keep_alive_s,
        will=will and Will(topic=will.topic, payload=will.payload, qos=will.qos, retain=will.retain),
        # A password alone is new in MQTT 5; 3.1.1 wants a user name beside it.
        user=b"" if connect.user is None and connect.password is not None else connect.user,
        password=connect.password,
    )


def _announced(limits: Limits) -> dict[int, int | bytes]:
    """Retained messages, QoS 2 and wildcards are available: that is what a client takes for granted."""
    return {
        properties.RECEIVE_MAX: limits.receive_max,
        properties.PACKET_BYTES_MAX: limits.packet_bytes_max,
        properties.TOPIC_ALIAS_MAX: limits.topic_alias_max,
        properties.SUBSCRIPTION_IDENTIFIERS_AVAILABLE: 0,
        properties.SHARED_AVAILABLE: 0,
    }
