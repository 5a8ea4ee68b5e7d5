"""How a client that may come in is introduced to a broker: under which name, with whose credentials.

A client's sessions are its own: the identifier by which a broker knows it begins with the client's name, so nobody
takes another's over by calling itself like it. ``engine-7`` as ``engine-7`` stays that; as ``esp32`` it is
``engine-7/esp32``. No name has a slash in it, so no two clients meet. Brokers know gateways alone: in CONNECT stand the
gateway's own credentials, unless the broker is to judge the client itself.

Everything else is said as the client said it, but for MQTT 3.1, which is carried as 3.1.1: not all brokers know it, and
nothing that follows differs.
"""

import hashlib

import msgspec

from tidegate.gateway.connection.summary import ConnectSummary
from tidegate.gateway.connection.terms import Terms
from tidegate.gateway.identity.verdicts import Accepted
from tidegate.mqtt import properties
from tidegate.mqtt.connect import Connect
from tidegate.mqtt.encoding import encode
from tidegate.mqtt.properties import EMPTY, NEVER_EXPIRES, PACKET_BYTES_MAX_UNSAID, RECEIVE_MAX_UNSAID
from tidegate.mqtt.violations import BAD_AUTHENTICATION_METHOD, CLIENT_ID_INVALID, NOT_AUTHORIZED, Violation

_TEXT_BYTES_MAX = 65_535
_ODD = b" .*>%" + bytes(range(32)) + b"\x7f"


class Introduction(msgspec.Struct, frozen=True):
    """What stays known of the client, all that the broker is told, and the packet that says it."""

    connect: ConnectSummary
    said: Connect
    packet: bytes

    def without_credentials(self) -> "Introduction":
        return Introduction(self.connect, msgspec.structs.replace(self.said, user=None, password=None), b"")

    def deletion(self) -> bytes:
        """A CONNECT that ends the client's session. Only for a client whose broker knows the gateway alone."""
        return encode(msgspec.structs.replace(self.said, clean=True, will=None, properties=EMPTY), self.said.version)

    def __repr__(self) -> str:
        """Without the packet: credentials are in it."""
        return f"Introduction({self.connect!r})"


def introduce(said: Connect, packet: bytes, client: Accepted, terms: Terms) -> Introduction:
    """A client of MQTT 5 that brings no identifier is given one here. A will is judged like any publish."""
    if not client.passes_credentials and properties.AUTHENTICATION_METHOD in said.properties.values:
        raise Violation(BAD_AUTHENTICATION_METHOD, "extended authentication")
    if said.will is not None and not client.rights.may_publish(said.will.topic):
        raise Violation(NOT_AUTHORIZED, "not its own topic", "the will")
    assigned = terms.token().encode() if said.version == 5 and not said.client_id else b""
    told = said
    identifier = said.client_id or assigned
    if not client.keeps_identifier:
        identifier = _identifier(client.name.encode(), identifier)
    if not client.passes_credentials:
        told = msgspec.structs.replace(said, client_id=identifier, user=terms.own_user, password=terms.own_password)
    elif identifier != said.client_id:
        told = msgspec.structs.replace(said, client_id=identifier)
    if told.version == 3:
        user = b"" if told.user is None and told.password is not None else told.user
        told = msgspec.structs.replace(told, version=4, user=user)
    connect = _summary(said, told, client, assigned)
    return Introduction(connect, told, packet if told is said else encode(told, told.version))


def _identifier(name: bytes, client_id: bytes) -> bytes:
    """As brokers know the client. One of 3.1.1 that brings none is given one by its broker, for as long as it stays."""
    if not client_id:
        return b""
    whole = _plain(name) if client_id == name else b"%b/%b" % (_plain(name), _plain(client_id))
    if len(whole) > _TEXT_BYTES_MAX:
        raise Violation(CLIENT_ID_INVALID, "client identifier too long")
    return whole


def _plain(text: bytes) -> bytes:
    """With a number in the place of what not every broker takes in an identifier, and so that no two become one."""
    if len(text.translate(None, _ODD)) == len(text):
        return text
    return b"".join(b"%%%02X" % byte if byte in _ODD else bytes((byte,)) for byte in text)


def _summary(said: Connect, told: Connect, client: Accepted, assigned: bytes) -> ConnectSummary:
    said_by_5 = said.properties
    forever_before_5 = said.version < 5 and not said.clean
    return ConnectSummary(
        version=said.version,
        client_id=told.client_id.decode(),
        clean=said.clean,
        keep_alive_s=said.keep_alive_s,
        owner=_digest(said) if client.passes_credentials else _owner(client.name),
        assigned_id=assigned,
        will=told.will,
        session_expiry_s=said_by_5.number(properties.SESSION_EXPIRY, NEVER_EXPIRES if forever_before_5 else 0),
        receive_max=said_by_5.number(properties.RECEIVE_MAX, RECEIVE_MAX_UNSAID),
        packet_bytes_max=said_by_5.number(properties.PACKET_BYTES_MAX, PACKET_BYTES_MAX_UNSAID),
        topic_alias_max=said_by_5.number(properties.TOPIC_ALIAS_MAX, 0),
        wants_problems=bool(said_by_5.number(properties.REQUEST_PROBLEM_INFORMATION, 1)),
        authenticates=properties.AUTHENTICATION_METHOD in said_by_5.values,
    )


def _owner(name: str) -> bytes:
    return hashlib.blake2b(name.encode(), digest_size=16, person=b"client").digest()


def _digest(said: Connect) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    method, data = (
        said.properties.values.get(identifier)
        for identifier in (properties.AUTHENTICATION_METHOD, properties.AUTHENTICATION_DATA)
    )
    for field in (said.user, said.password, method, data):
        if isinstance(field, bytes):
            digest.update(b"\1" + len(field).to_bytes(2, "big") + field)
        else:
            digest.update(b"\0")
    return digest.digest()
