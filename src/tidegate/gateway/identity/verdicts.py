"""What a client presents, and what can be said about it: the values between the gateway and the methods.

The reasons are counted: there are few of them, and none contains what a client sent. The sentences are for the client:
none of them tells whether there is somebody of that name.
"""

from collections.abc import Awaitable, Callable

import msgspec

from tidegate.gateway.identity.rights import Rights
from tidegate.model.credentials import Proof
from tidegate.model.identity import MethodName, Patterns
from tidegate.mqtt.violations import NOT_AUTHORIZED, QUOTA_EXCEEDED, SERVER_UNAVAILABLE

BAD_CREDENTIALS = 0x86


class Certificate(msgspec.Struct, frozen=True, kw_only=True):
    """What a certificate says that the client has shown and the listener has verified."""

    common_name: str | None = None
    dns: tuple[str, ...] = ()
    uris: tuple[str, ...] = ()
    emails: tuple[str, ...] = ()
    expires_s: float | None = None  # Unix time


class Presented(msgspec.Struct, frozen=True, kw_only=True):
    """What a client says of itself when it connects."""

    user: bytes | None = None
    password: bytes | None = None
    client_id: str = ""
    address: str = ""
    certificate: Certificate | None = None

    def __repr__(self) -> str:
        return f"Presented(user={self.user!r}, client_id={self.client_id!r}, address={self.address!r})"

    @property
    def user_name(self) -> str | None:
        """As text; empty where there is none, None where it is no text."""
        try:
            return (self.user or b"").decode()
        except UnicodeDecodeError:
            return None

    @property
    def name(self) -> str | None:
        """The user name, or the client id of a client that has none; None where it is no text."""
        user = self.user_name
        return self.client_id if user == "" else user


class Refused(msgspec.Struct, frozen=True):
    """A client that may not connect, or not stay. ``code`` is MQTT 5's."""

    reason: str
    code: int
    sentence: str


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What a method says of a client that it knows. ``patterns`` are its own word on what the client may do."""

    name: str
    proof: Proof | None = None
    expires_s: float | None = None  # Unix time
    patterns: Patterns | None = None


class Later(msgspec.Struct, frozen=True):
    """The method has to wait for an answer."""

    ask: Callable[[], Awaitable[Known | Refused | None]]

    def __repr__(self) -> str:
        return "Later()"  # what it asks has a password in it


class Accepted(msgspec.Struct, frozen=True, kw_only=True):
    """A client that is who it says it is, for as long as its proof counts."""

    name: str
    method: MethodName
    rights: Rights
    is_application: bool = False
    # Of a derived password: what it takes to judge the connection again without the password.
    generation: int | None = None
    key_id: str | None = None
    expires_s: float | None = None  # Unix time
    passes_credentials: bool = False  # the broker decides about them
    keeps_identifier: bool = False  # the broker knows it by the identifier that it chose
    has_own_patterns: bool = False  # its rights are the method's word


_WRONG = "The user name or password is not right."
_NOT_ALLOWED = "This client is not allowed here."
_LATER = "Who this client is cannot be checked now: try again soon."

NOBODY_KNOWS = Refused("no known credentials", BAD_CREDENTIALS, _WRONG)
WRONG = Refused("wrong credentials", BAD_CREDENTIALS, _WRONG)
REVOKED = Refused("revoked", NOT_AUTHORIZED, _NOT_ALLOWED)
NOT_BY_THIS_METHOD = Refused("not by this method", NOT_AUTHORIZED, _NOT_ALLOWED)
EXPIRED = Refused("expired credentials", NOT_AUTHORIZED, "What proves who this client is has expired: get a new one.")
NO_NAME = Refused("not a device name", NOT_AUTHORIZED, "The name of this client cannot be a level of a topic.")
KEYS_NOT_KNOWN = Refused("keys not known yet", SERVER_UNAVAILABLE, _LATER)
TOO_MANY = Refused(
    "too many of one client", QUOTA_EXCEEDED, "This client has too many connections: close one, then try again."
)
SERVICE_AWAY = Refused("identity service away", SERVER_UNAVAILABLE, _LATER)
TOO_MANY_CHECKS = Refused("too many checks at once", SERVER_UNAVAILABLE, _LATER)
REFUSALS = (
    NOBODY_KNOWS,
    WRONG,
    REVOKED,
    NOT_BY_THIS_METHOD,
    EXPIRED,
    NO_NAME,
    KEYS_NOT_KNOWN,
    TOO_MANY,
    SERVICE_AWAY,
    TOO_MANY_CHECKS,
)
