"""What an operator may choose about a gateway."""

from typing import Annotated

import msgspec

Port = Annotated[int, msgspec.Meta(ge=0, le=65_535)]
Seconds = Annotated[float, msgspec.Meta(gt=0, le=3600)]
Positive = Annotated[int, msgspec.Meta(ge=1)]


class GatewaySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Port 0 takes a free one. Every limit is there so that one client cannot take what belongs to all."""

    # A name is part of a key on the control bus.
    name: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_-]{1,64}$")] = "gateway-1"
    host: str = "127.0.0.1"
    port: Port = 0
    http_port: Port = 0
    # How long a device may take to send its CONNECT, and a broker to answer one.
    connect_timeout_s: Seconds = 10.0
    broker_timeout_s: Seconds = 5.0
    connect_bytes_max: Positive = 65_536
    packet_bytes_max: Positive = 1024**2
    # Each connection takes two open files, its own and the one to the broker.
    connections_max: Positive = 9_000
    sticky_clients_max: Positive = 100_000
    http_timeout_s: Seconds = 5.0
    http_requests_max: Positive = 256
