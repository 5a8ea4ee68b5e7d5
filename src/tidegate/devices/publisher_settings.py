"""How many messages a publisher sends ahead, and how patient it is."""

import msgspec

WINDOW = 64


class PublisherSettings(msgspec.Struct, frozen=True, kw_only=True):
    window: int = WINDOW
    keep_alive_s: int = 20
    connect_timeout_s: float = 5.0
    # A broker that answers pings but not publishes is as good as lost.
    acknowledge_timeout_s: float = 15.0
    backoff_s_min: float = 0.05
    backoff_s_max: float = 3.0
