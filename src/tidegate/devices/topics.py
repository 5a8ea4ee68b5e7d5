"""Where a device's readings go: ``telemetry/<device>``, or ``telemetry/<device>/<class>`` where it has a class."""

import msgspec

from tidegate.model.classes import ClassName
from tidegate.model.devices import check_device
from tidegate.model.errors import UserError
from tidegate.model.readings import TELEMETRY


def topic_of(device: str, device_class: str | None = None) -> bytes:
    check_device(device)
    if device_class is None:
        return f"{TELEMETRY}/{device}".encode()
    check_class(device_class)
    return f"{TELEMETRY}/{device}/{device_class}".encode()


def check_class(device_class: str) -> None:
    """Refuse a name that no class can have."""
    try:
        msgspec.convert(device_class, ClassName)
    except msgspec.ValidationError:
        raise UserError(
            f"Device class {device_class!r:.80} is no name of a class: "
            "use 1 to 32 of the characters a-z 0-9 _ -, a letter first."
        ) from None
