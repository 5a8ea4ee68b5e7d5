"""Lines to paste into a shell."""

import shlex

EXAMPLE = '{"value": 21.5}'


def reading_line(address: tuple[str, int], user: str, password: str, device: str) -> str:
    """Sends one reading of a device."""
    host, port = address
    who = ["-u", user, "-P", password, "-i", device]
    return shlex.join(
        ["mosquitto_pub", "-h", host, "-p", str(port), *who, "-q", "1", "-t", f"telemetry/{device}", "-m", EXAMPLE]
    )
