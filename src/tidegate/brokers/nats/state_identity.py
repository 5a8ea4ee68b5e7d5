"""What a state directory of the embedded brokers is: its size, its passwords, and the ports it had last time."""

import secrets
from pathlib import Path

import msgspec

from tidegate.brokers.nats.server_config import Passwords, ServerPorts
from tidegate.brokers.settings import BrokerSettings
from tidegate.machine.ports import HOST, free_port, is_free
from tidegate.machine.private_files import write_private
from tidegate.model.errors import UserError

IDENTITY_FILE = "brokers.json"


class StateIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """What a state directory is, for as long as it exists. Ports may change, the rest may not."""

    nodes: int
    slices: int
    passwords: Passwords
    brokers: tuple[ServerPorts, ...]
    control: ServerPorts


def settle_identity(state: Path, settings: BrokerSettings) -> StateIdentity:
    """The one on disk with ports that are free now, or a new one."""
    chosen = settings.mqtt_ports or (0,) * settings.nodes
    for port in chosen:
        if port and not is_free(port):
            raise UserError(
                f"The MQTT port {port} on {HOST} is in use: stop the program that listens there, or "
                "choose another in the brokers' setting mqtt_ports (0 takes a free one)."
            )
    path = state / IDENTITY_FILE
    before = _read(path, settings)
    taken = {port for port in chosen if port}
    brokers = [
        _settle_ports(before.brokers[index] if before else None, mqtt, taken) for index, mqtt in enumerate(chosen)
    ]
    identity = StateIdentity(
        nodes=settings.nodes,
        slices=settings.slices,
        passwords=before.passwords if before else _new_passwords(),
        brokers=tuple(brokers),
        control=_settle_ports(before.control if before else None, 0, taken),
    )
    write_private(path, msgspec.json.format(msgspec.json.encode(identity)))
    return identity


def _read(path: Path, settings: BrokerSettings) -> StateIdentity | None:
    if not path.exists():
        return None
    try:
        identity = msgspec.json.decode(path.read_bytes(), type=StateIdentity)
    except msgspec.DecodeError as error:
        raise UserError(f"{path} is damaged ({error}): restore it, or choose another directory.") from None
    for name in ("nodes", "slices"):
        was, now = getattr(identity, name), getattr(settings, name)
        if was != now:
            raise UserError(
                f"The data in {path.parent} was written with {name}: {was}, and {now} is asked for: "
                f"keep {was}, or choose another directory with --state."
            )
    return identity


def _settle_ports(before: ServerPorts | None, mqtt: int, taken: set[int]) -> ServerPorts:
    """A node's ports: the chosen one, else those of last time that are still free, else new ones."""

    def settle(last: int) -> int:
        port = last if last and last not in taken and is_free(last) else free_port(taken)
        taken.add(port)
        return port

    return ServerPorts(
        client=settle(before.client if before else 0),
        monitor=settle(before.monitor if before else 0),
        mqtt=mqtt or settle(before.mqtt if before else 0),
        route=settle(before.route if before else 0),
    )


def _new_passwords() -> Passwords:
    return Passwords(**{name: secrets.token_urlsafe(24) for name in Passwords.__struct_fields__})
