"""Lines to paste into a shell, for terminal and dashboard alike."""

import shlex
from urllib.parse import quote

EXAMPLE = '{"value": 21.5}'


def reading_line(address: tuple[str, int], user: str, password: str, device: str) -> str:
    """Sends one reading of a device."""
    host, port = address
    who = ["-u", user, "-P", password, "-i", device]
    return shlex.join(
        ["mosquitto_pub", "-h", host, "-p", str(port), *who, "-q", "1", "-t", f"telemetry/{device}", "-m", EXAMPLE]
    )


def http_line(address: tuple[str, int], user: str, password: str, device: str) -> str:
    """The same by HTTP, for devices without MQTT. It prints the answer, which is short."""
    url = f"http://{place_of(address)}/v1/telemetry/{quote(device, safe='')}"
    return shlex.join(["curl", "-i", "-u", f"{user}:{password}", "-d", EXAMPLE, url])


def place_of(address: tuple[str, int]) -> str:
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
