"""Why clients are refused and publishes are dropped, in the words that are counted.

The words are fixed: each has a counter of its own in the memory that all processes share, and nothing that a client
says may become one of them. A word that is not in this list counts as ``other``.
"""

OTHER = "other"

REASONS = (
    # Before a connection is taken.
    "too many connections",
    "bad PROXY header",
    "PROXY version 1 is not spoken",
    "TLS handshake failed",
    "bad TLS record",
    "no valid client certificate",
    "bad WebSocket",
    "not MQTT",
    "no CONNECT in time",
    "CONNECT too large",
    "malformed CONNECT",
    "unknown protocol",
    "no client identifier",
    "extended authentication",
    "too many properties",
    "no broker available",
    "refused by the broker",
    "no file or port left",
    "draining",
    # While connected.
    "malformed packet",
    "malformed topic",
    "topic too long",
    "wildcard as a topic level",
    "protocol error",
    "too many packets at once",
    "too many pings",
    "topic alias invalid",
    "receive maximum exceeded",
    "subscription identifier",
    "larger than the client takes",
    "packet too large",
    "malformed filter",
    "malformed SUBSCRIBE or UNSUBSCRIBE",
    "SUBSCRIBE too large",
    "too many unanswered subscriptions",
    "forged advice",
    "answers are not read",
    "keep-alive exceeded",
    "quota exceeded",
    "held too long",
    "held when it left",
    "expired",
    "broken by the broker",
    # By HTTP.
    "HTTP 400",
    "HTTP 401",
    "HTTP 408",
    "HTTP 413",
    "HTTP 503",
    OTHER,
)
PLACES = {reason: place for place, reason in enumerate(REASONS)}
