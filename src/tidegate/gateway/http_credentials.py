"""What a request shows of who has sent it: HTTP Basic, a Bearer token, or the certificate of its connection.

Basic says a name and any password. Bearer says one word: a signed token names its owner itself, and a derived password
is taken to be that of the device in the address.
"""

import base64
import binascii

from tidegate.gateway.identity.verdicts import (
    BAD_CREDENTIALS,
    EXPIRED,
    NOT_BY_THIS_METHOD,
    Presented,
    Refused,
)
from tidegate.gateway.layers.layer import Peer
from tidegate.mqtt.violations import NOT_AUTHORIZED, QUOTA_EXCEEDED, SERVER_UNAVAILABLE

CHALLENGE = 'Basic realm="tidegate", Bearer'
# Whom only a broker knows: there is none to ask before a reading is published, and then it would be too late.
ONLY_THE_BROKER_KNOWS = Refused(
    NOT_BY_THIS_METHOD.reason,
    BAD_CREDENTIALS,
    "Only the broker can tell who this client is, and it cannot be asked by HTTP: "
    "use MQTT, or credentials that the gateway itself can check.",
)
_STATUS = {BAD_CREDENTIALS: 401, NOT_AUTHORIZED: 403, QUOTA_EXCEEDED: 429, SERVER_UNAVAILABLE: 503}


def presented(authorization: str, device: str, peer: Peer) -> Presented:
    """``authorization`` is the header as it came, ``device`` the one in the address."""
    scheme, _, given = authorization.strip().partition(" ")
    user, password = None, None
    if scheme.lower() == "basic":
        user, password = _basic(given.strip())
    elif scheme.lower() == "bearer":
        password = given.strip().encode("latin-1", errors="replace")
    return Presented(
        user=user, password=password, client_id=device, address=peer.address[0], certificate=peer.certificate
    )


def status_of(refused: Refused) -> int:
    """Whose proof is not right, or has expired, may bring a better one; who is known and not allowed may not."""
    return 401 if refused is EXPIRED else _STATUS.get(refused.code, 403)


def _basic(given: str) -> tuple[bytes | None, bytes | None]:
    """User and password; nothing where it is no such pair."""
    try:
        pair = base64.b64decode(given, validate=True)
    except (binascii.Error, ValueError):
        return None, None
    user, colon, password = pair.partition(b":")
    return (user, password) if colon else (None, None)
