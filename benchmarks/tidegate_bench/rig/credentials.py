"""As whom the clients of a load connect: the one place where that is decided.

The installation says it. One that names a gateway is reached through it, by names of one's own and passwords that its
keys derive; one that names none is its brokers, and whatever stands before them and judges nobody: they know gateways
alone, so a load says that it is one.
"""

from pathlib import Path

import msgspec

from tidegate.bus import identity
from tidegate.bus.client import Bus
from tidegate.bus.installation import load_installation, save_installation
from tidegate.bus.issued import Credentials, credentials_of
from tidegate.model.installation import Installation


def credentials(installation: Installation) -> Credentials:
    """User and password of the client of a name."""
    return credentials_of(installation)


def settle_keys(state: Path) -> None:
    """An installation that nobody started with ``tidegate up`` has keys then."""
    with Bus(load_installation(state).control_urls, name="bench") as bus:
        identity.settle(bus, state)


def save_through(state: Path, gateway: tuple[str, int], directory: Path) -> Path:
    """The same installation as it is reached through this gateway: a directory for the clients of a load."""
    directory.mkdir(mode=0o700, exist_ok=True)
    save_installation(msgspec.structs.replace(load_installation(state), gateway_mqtt=gateway), directory)
    return directory
