"""What an operator may choose about a gateway."""

from typing import Annotated

import msgspec

from tidegate.gateway.layers.listener import Listener, Port

Seconds = Annotated[float, msgspec.Meta(gt=0, le=3600)]
Positive = Annotated[int, msgspec.Meta(ge=1)]


class TopicLimit(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What all clients of a gateway together may publish on some topics. What is more waits, in order, per client."""

    topics: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]  # MQTT filters
    rate_per_s: Annotated[float, msgspec.Meta(gt=0, le=1e9)]
    burst: Annotated[float, msgspec.Meta(ge=1, le=1e9)] = 1.0


class GatewaySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Port 0 takes a free one. Every limit is there so that one client cannot take what belongs to all."""

    # A name is part of a key on the control bus.
    name: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_-]{1,64}$")] = "gateway-1"
    host: str = "127.0.0.1"
    # Without TLS; each of the two can be closed, where ``listeners`` has others.
    port: Port = 0
    http_port: Port = 0
    plain_mqtt: bool = True
    plain_http: bool = True
    listeners: Annotated[tuple[Listener, ...], msgspec.Meta(max_length=16)] = ()
    # Processes that share the ports; what they have to agree on is in memory they share.
    processes: Annotated[int, msgspec.Meta(ge=1, le=64)] = 2
    # How long a gateway that is replaced takes to send its clients away.
    drain_s: Seconds = 30.0
    # How long a device may take to send its CONNECT, and a broker to answer one.
    connect_timeout_s: Seconds = 10.0
    broker_timeout_s: Seconds = 5.0
    # Addresses of this machine that brokers are dialled from, in turn: each has some 28,000 ports per broker.
    source_addresses: Annotated[tuple[str, ...], msgspec.Meta(max_length=64)] = ()
    # Clients that are being connected to brokers at a time, per process, and how long one waits for its turn.
    admitting_max: Positive = 64
    admission_s_max: Seconds = 10.0
    connect_bytes_max: Positive = 65_536
    packet_bytes_max: Positive = 1024**2
    topic_bytes_max: Annotated[int, msgspec.Meta(ge=1, le=65_535)] = 4_096
    properties_max: Positive = 64  # of one MQTT 5 packet
    # MQTT 5 clients are told this much; others that ask for more are taken to ask for this much.
    keep_alive_s_max: Annotated[int, msgspec.Meta(ge=1, le=65_535)] = 65_535
    # Each connection takes two open files, its own and the one to the broker.
    connections_max: Positive = 9_000
    # Of one address, per process; 0: as many as there may be. Behind one address may be a whole site of devices.
    address_connections_max: Annotated[int, msgspec.Meta(ge=0)] = 0
    # Of one device, per process: one that is taken over has two for a moment. Applications may have more.
    device_connections_max: Positive = 8
    sticky_clients_max: Positive = 100_000
    # What is advised is also enforced: a client that does not listen waits here; one that follows advice never notices.
    enforce_advice: bool = True
    # Credits of one client: a publish costs one and one more per 4 KiB; they return slower while it is late.
    client_credits_max: Annotated[float, msgspec.Meta(ge=1, le=1e9)] = 50_000.0
    client_credits_per_s: Annotated[float, msgspec.Meta(gt=0, le=1e9)] = 10_000.0
    limits: Annotated[tuple[TopicLimit, ...], msgspec.Meta(max_length=64)] = ()
    # What waits of one client, and for how long; a shorter keep-alive's half goes before.
    held_bytes_max: Positive = 65_536
    hold_s_max: Seconds = 30.0
    # What is acknowledged is noted by identity and reported: readings that the tables lack are missed (docs/ledger.md).
    ledger: bool = True
    # MQTT 5 clients over their credits are told so (PUBACK 0x97) instead of being held.
    tell_quota_exceeded: bool = False
    http_timeout_s: Seconds = 5.0
    http_requests_max: Positive = 256
