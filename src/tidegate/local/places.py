"""The ports and the token of one state directory, chosen once and kept."""

import secrets
from collections.abc import Iterable
from pathlib import Path

import msgspec

from tidegate.machine.ports import free_port, is_free
from tidegate.machine.private_files import write_private
from tidegate.model.errors import UserError
from tidegate.settings.tree import Settings

PLACES_FILE = "places.json"
MQTT_PORTS = range(1883, 1893)  # where devices look first, and the next ones


class Places(msgspec.Struct, frozen=True, kw_only=True):
    """Ports and token, kept over restarts: an address that somebody wrote down stays true."""

    gateway_mqtt: int
    gateway_http: int
    web: int
    token: str


def settle_places(state: Path, settings: Settings) -> Places:
    """Those of last time where they are still free, the chosen ones, else new ones."""
    path = state / PLACES_FILE
    before = Places(gateway_mqtt=0, gateway_http=0, web=0, token="")
    if path.exists():
        try:
            before = msgspec.json.decode(path.read_bytes(), type=Places)
        except msgspec.DecodeError as error:
            raise UserError(f"{path} is damaged ({error}): delete it, and new ports and a token are made.") from None
    taken: set[int] = set()
    gateway = settings.gateway
    places = Places(
        gateway_mqtt=_settle(gateway.port, before.gateway_mqtt, taken, "gateway.port", MQTT_PORTS),
        gateway_http=_settle(gateway.http_port, before.gateway_http, taken, "gateway.http_port"),
        web=_settle(settings.web.port, before.web, taken, "web.port"),
        token=before.token or secrets.token_urlsafe(24),
    )
    write_private(path, msgspec.json.encode(places))
    return places


def _settle(chosen: int, before: int, taken: set[int], setting: str, usual: Iterable[int] = ()) -> int:
    if chosen and (chosen in taken or not is_free(chosen)):
        raise UserError(f"Port {chosen} ({setting}) is in use: end the program that has it, or choose another.")
    liked = (port for port in (before, *usual) if port and port not in taken and is_free(port))
    port = chosen or next(liked, 0) or free_port(taken)
    taken.add(port)
    return port
