"""As whom clients come to a gateway that judges them: by their own names, with passwords that the keys derive."""

from pathlib import Path

from support.bus import ControlBus
from tidegate.bus import identity
from tidegate.bus.documents import IDENTITY_KEYS
from tidegate.model.credentials import Key, password_of
from tidegate.model.installation import Installation
from tidegate.mqtt.client import encode_connect


def settled(here: Installation, state: Path) -> Key:
    """The key of an installation that nobody started with ``tidegate up``: made if it has none."""
    with ControlBus(here) as bus:
        return identity.settle(bus, state).current


def password(here: Installation, name: str, generation: int = 1) -> str:
    """By the key that counts now."""
    with ControlBus(here) as bus:
        keys = bus.get(IDENTITY_KEYS)
    assert keys is not None, "the installation has no keys: settle them first"
    return password_of(keys.current, name, generation)


def connect_packet(key: Key, name: str, client_id: str | None = None, **options: object) -> bytes:
    """A device's CONNECT; it calls itself by its name unless it has another client id."""
    words = password_of(key, name, 1)
    return encode_connect(name if client_id is None else client_id, user=name, password=words, **options)  # type: ignore[arg-type]
