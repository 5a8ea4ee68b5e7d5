"""What an operator may choose about the dashboard, the API and the metrics."""

from typing import Annotated

import msgspec


class WebSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Port 0 takes a free one. Beyond loopback it wants a proxy with TLS in front: the token travels in the clear."""

    host: str = "127.0.0.1"
    port: Annotated[int, msgspec.Meta(ge=0, le=65_535)] = 0
