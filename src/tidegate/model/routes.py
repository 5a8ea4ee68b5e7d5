"""Routes: which brokers a gateway may give new connections to, and in which shares."""

from typing import Annotated

import msgspec


class Broker(msgspec.Struct, frozen=True, kw_only=True):
    """One MQTT listener. A weight of 0, or being unhealthy, keeps new clients away; existing ones stay."""

    name: str
    host: str
    port: int
    weight: Annotated[float, msgspec.Meta(ge=0)] = 1.0
    healthy: bool = True
    mqtt5: bool | None = None  # None: a gateway finds out with its first client that speaks it
    proxy_protocol: bool = False  # begin every connection with who the client is (PROXY protocol, version 2)


class Routes(msgspec.Struct, frozen=True, kw_only=True):
    brokers: tuple[Broker, ...]
