"""What names a device may have: one level of a topic, and one field of a record."""

from tidegate.model.errors import UserError

DEVICE_BYTES_MAX = 1_024
# A topic level cannot hold the first three and NUL; a record cannot hold the others.
_FORBIDDEN = frozenset("/+#\0\t\n\r")
# Names like others in MQTT, but wildcards to the broker: it would acknowledge readings that no slice can hold.
_WILDCARDS = frozenset("*>")


def numbered(prefix: str, number: int) -> str:
    """The name of one of many devices that are made at once."""
    return f"{prefix}-{number:06d}"


def check_device(device: str) -> None:
    """Refuse a name that would not fit one topic level and one record."""
    if not device or len(device.encode()) > DEVICE_BYTES_MAX or not _FORBIDDEN.isdisjoint(device):
        raise UserError(
            f"Device name {device!r:.80} cannot be a topic level: use 1 to {DEVICE_BYTES_MAX} bytes without "
            "/ + # tab, line break or NUL."
        )
    if device in _WILDCARDS:
        raise UserError(f"Device name {device!r} is a wildcard to the broker: use it only as a part of a longer name.")
