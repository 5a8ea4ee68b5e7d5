"""What an operator may choose about one listener of a gateway."""

from typing import Annotated, Literal

import msgspec

Port = Annotated[int, msgspec.Meta(ge=0, le=65_535)]


class Listener(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One more listener. With a certificate and its key it is TLS; with ``client_ca`` clients must show one as well."""

    port: Port
    host: str | None = None  # the gateway's, where it is not given
    protocol: Literal["mqtt", "websocket", "http"] = "mqtt"
    certificate: str | None = None  # PEM files
    key: str | None = None
    client_ca: str | None = None
    proxy_protocol: bool = False  # who connects here is a load balancer that says who its client is (version 2)
