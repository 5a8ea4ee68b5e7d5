"""Where a running installation is reached: addresses and credentials, as values."""

import msgspec


class LogAddress(msgspec.Struct, frozen=True):
    """Where brokers that keep a log in slices let it be read. It travels to every worker that reads."""

    kind: str  # of broker: the adapter that can read it
    urls: tuple[str, ...]
    slices: int


class Installation(msgspec.Struct, frozen=True, kw_only=True):
    """Addresses and credentials. It holds secrets: what is stored of it only its owner may read."""

    control_urls: tuple[str, ...]  # user, password, host and port of the control bus
    broker_kind: str = "nats"  # which adapter of ``brokers/`` speaks to them
    data_urls: tuple[str, ...]  # where the brokers' log is read
    mqtt_addresses: tuple[tuple[str, int], ...]
    monitor_urls: tuple[str, ...]  # http://host:port of each broker's monitoring page
    mqtt_user: str
    mqtt_password: str
    slices: int  # of the brokers' log; 0 where they keep none
    tables: str  # directory of the Delta tables
    # Where the parts beyond the brokers are reached, once they run.
    gateway_mqtt: tuple[str, int] | None = None
    gateway_http: tuple[str, int] | None = None
    web: tuple[str, int] | None = None
    token: str = ""  # what the dashboard and the API ask for

    @property
    def device_addresses(self) -> tuple[tuple[str, int], ...]:
        """Where devices connect: the gateway, or the brokers themselves where none runs."""
        return (self.gateway_mqtt,) if self.gateway_mqtt else self.mqtt_addresses

    @property
    def log(self) -> LogAddress | None:
        """Where the log is read; None where the brokers keep none."""
        return LogAddress(self.broker_kind, self.data_urls, self.slices) if self.slices else None
