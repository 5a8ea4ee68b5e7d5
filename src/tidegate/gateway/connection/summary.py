"""What stays known of a CONNECT while its client is connected."""

import msgspec

from tidegate.mqtt.connect import Will
from tidegate.mqtt.properties import PACKET_BYTES_MAX_UNSAID, RECEIVE_MAX_UNSAID


class ConnectSummary(msgspec.Struct, frozen=True, kw_only=True):
    """Not the credentials, but a digest that tells whether two connections are of the same client. What only MQTT 5
    says has the value here that silence about it means.
    """

    version: int
    client_id: str  # as the broker knows it
    clean: bool
    keep_alive_s: int
    owner: bytes
    assigned_id: bytes = b""  # what a client that brought no identifier is told
    will: Will | None = None
    session_expiry_s: int = 0
    receive_max: int = RECEIVE_MAX_UNSAID
    packet_bytes_max: int = PACKET_BYTES_MAX_UNSAID
    topic_alias_max: int = 0
    wants_problems: bool = True  # reasons and user properties on any packet
    authenticates: bool = False  # by a method of its own, with AUTH packets

    @property
    def whose(self) -> bytes:
        """What stands for this client under this identifier, and for nobody else."""
        return self.owner + self.client_id.encode()

    def __repr__(self) -> str:
        return f"ConnectSummary(version={self.version}, client_id={self.client_id!r}, clean={self.clean})"
