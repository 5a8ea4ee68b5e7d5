"""Where a running installation is reached: written by whoever starts the brokers, read by every other part."""

import os
from pathlib import Path

import msgspec

from tidegate.model.errors import UserError

FILE_NAME = "installation.json"


class Installation(msgspec.Struct, frozen=True, kw_only=True):
    """Addresses and credentials. The file holds secrets, so only its owner may read it."""

    control_urls: tuple[str, ...]  # nats://user:password@host:port of the control bus
    data_urls: tuple[str, ...]  # the same for the brokers' own protocol
    mqtt_addresses: tuple[tuple[str, int], ...]
    monitor_urls: tuple[str, ...]  # http://host:port of each broker's monitoring page
    mqtt_user: str
    mqtt_password: str
    slices: int
    tables: str  # directory of the Delta tables
    # Where the parts beyond the brokers are reached, once they run.
    gateway_mqtt: tuple[str, int] | None = None
    gateway_http: tuple[str, int] | None = None
    web: tuple[str, int] | None = None
    token: str = ""  # what the dashboard, the API and HTTP ingest ask for

    @property
    def device_addresses(self) -> tuple[tuple[str, int], ...]:
        """Where devices connect: the gateway, or the brokers themselves where none runs."""
        return (self.gateway_mqtt,) if self.gateway_mqtt else self.mqtt_addresses

    def save(self, state_directory: Path) -> Path:
        path = state_directory / FILE_NAME
        partial = path.with_suffix(".partial")
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(self)))
        partial.replace(path)
        return path

    @classmethod
    def load(cls, state_directory: Path) -> "Installation":
        path = state_directory / FILE_NAME
        try:
            return msgspec.json.decode(path.read_bytes(), type=cls)
        except FileNotFoundError:
            raise UserError(
                f"No running installation in {state_directory}: start one with 'tidegate up', or name its "
                "directory with --state."
            ) from None
        except msgspec.DecodeError as error:
            raise UserError(f"{path} is damaged ({error}): restart 'tidegate up', which writes it anew.") from None
