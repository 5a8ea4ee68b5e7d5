"""What an operator may choose about the embedded brokers."""

from typing import Annotated, Literal

import msgspec

from tidegate.model.errors import UserError

Port = Annotated[int, msgspec.Meta(ge=0, le=65_535)]
DISK_BYTES_MIN = 64 * 1024**2
Positive = Annotated[int, msgspec.Meta(ge=1)]


class BrokerSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Size, addresses and promise of the embedded brokers.

    ``durability`` says what an acknowledged message survives:

    * ``process-kill``: the death of any process, or of all of them, at any moment. The operating system holds
      what was acknowledged, and the disk has it at most two minutes later; a power failure of every machine
      that holds a copy can lose those two minutes.
    * ``power-loss``: also a power failure, because each message is on the disk before it is acknowledged.
      Every acknowledgement then waits for the disk.
    """

    nodes: Annotated[int, msgspec.Meta(ge=1, le=3)] = 1
    slices: Annotated[int, msgspec.Meta(ge=1, le=64)] = 8
    # One MQTT port per node; 0 or nothing takes a free one and keeps it over restarts.
    mqtt_ports: tuple[Port, ...] = ()
    durability: Literal["process-kill", "power-loss"] = "process-kill"
    # What each broker may store; the disk guard withholds acknowledgements before it is reached.
    disk_bytes_max: Annotated[int, msgspec.Meta(ge=DISK_BYTES_MIN)] = 10 * 1024**3
    # What a persistent session may keep while its client is away; one that keeps more, or longer, is ended.
    session_messages_max: Positive = 1_000_000
    session_bytes_max: Positive = 256 * 1024**2
    session_age_s_max: Annotated[float, msgspec.Meta(ge=0.001, le=1e9)] = 7 * 86_400.0
    # What all absent ones may keep together: never more than an eighth of ``disk_bytes_max``.
    sessions_bytes_max: Positive = 1024**3
    # Subscriptions above QoS 0 of all absent ones; one that ends in # counts twice. The brokers have room for 20,000.
    sessions_subscriptions_max: Annotated[int, msgspec.Meta(ge=1, le=20_000)] = 10_000

    def __post_init__(self) -> None:
        """Ranges again, because a value built in code passes no decoder."""
        for name, value, low, high in (
            ("nodes", self.nodes, 1, 3),
            ("slices", self.slices, 1, 64),
            ("disk_bytes_max", self.disk_bytes_max, DISK_BYTES_MIN, 1 << 62),
            ("session_messages_max", self.session_messages_max, 1, 1 << 62),
            ("session_bytes_max", self.session_bytes_max, 1, 1 << 62),
            ("session_age_s_max", self.session_age_s_max, 0.001, 1e9),
            ("sessions_bytes_max", self.sessions_bytes_max, 1, 1 << 62),
            ("sessions_subscriptions_max", self.sessions_subscriptions_max, 1, 20_000),
        ):
            if not low <= value <= high:
                raise UserError(f"The brokers' setting {name} is {value}: choose {low} to {high}.")
        if self.mqtt_ports and len(self.mqtt_ports) != self.nodes:
            raise UserError(
                f"The brokers' setting mqtt_ports names {len(self.mqtt_ports)} ports for {self.nodes} nodes: "
                "name one per node (0 takes a free one), or none."
            )
        chosen = [port for port in self.mqtt_ports if port]
        if len(set(chosen)) != len(chosen):
            raise UserError("The brokers' setting mqtt_ports names a port twice: give each node its own.")
