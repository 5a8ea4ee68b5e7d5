"""What a peer does that MQTT, or a limit of this gateway, does not allow: an MQTT 5 reason code, and words for it.

The words are counted by the gateway: there are few of them, and none contains what the client sent.
"""

UNSPECIFIED = 0x80  # codes from here on are errors; itself it is the one without a reason
MALFORMED = 0x81
PROTOCOL_ERROR = 0x82
UNSUPPORTED_VERSION = 0x84
CLIENT_ID_INVALID = 0x85
BAD_USER_OR_PASSWORD = 0x86
NOT_AUTHORIZED = 0x87
SERVER_UNAVAILABLE = 0x88
BAD_AUTHENTICATION_METHOD = 0x8C
TOPIC_FILTER_INVALID = 0x8F
TOPIC_NAME_INVALID = 0x90
TOPIC_ALIAS_INVALID = 0x94
PACKET_TOO_LARGE = 0x95
QUOTA_EXCEEDED = 0x97


class Violation(Exception):  # noqa: N818 - what happened, not that something failed here
    """The packet cannot be taken, and the connection ends. ``detail`` is for whoever looks for the fault."""

    def __init__(self, code: int, reason: str, detail: str = "") -> None:
        super().__init__(detail or reason)
        self.code = code
        self.reason = reason


def malformed(detail: str = "") -> Violation:
    return Violation(MALFORMED, "malformed packet", detail)


def protocol_error(detail: str) -> Violation:
    return Violation(PROTOCOL_ERROR, "protocol error", detail)
