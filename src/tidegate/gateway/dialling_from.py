"""From which of its own addresses a gateway dials a broker.

A connection needs a local port that no other one from the same address to the same broker has, and the kernel gives
out some 28,000 of them. That many clients reach one broker from one address, and as many more from each further one.
Addresses are taken in turn. The port is chosen when the broker is known: before, it would be taken for all brokers.
"""

import asyncio
import errno
import ipaddress
import socket
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from tidegate.model.errors import UserError
from tidegate.model.routes import Broker

PORT_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
PORTS_ELSEWHERE = 16_384  # where the kernel does not tell
_IP_BIND_ADDRESS_NO_PORT = 24  # Linux; Python has no name for it yet

Protocol = TypeVar("Protocol", bound=asyncio.BaseProtocol)


class Sources:
    """The addresses of one process, in turn. Without any the kernel chooses."""

    def __init__(self, addresses: Sequence[str] = ()) -> None:
        self._addresses = list(addresses)

    def __len__(self) -> int:
        return len(self._addresses)

    def in_turn(self) -> list[str]:
        """All of them, each time from the next one on."""
        self._addresses = [*self._addresses[1:], *self._addresses[:1]]
        return self._addresses


async def connect(
    loop: asyncio.AbstractEventLoop, protocol_factory: Callable[[], Protocol], broker: Broker, sources: Sources
) -> tuple[asyncio.Transport, Protocol]:
    """A connection to a broker, from the next address that has a port left; OSError as the last one has it."""
    if not len(sources):
        return await loop.create_connection(protocol_factory, broker.host, broker.port)
    shortage = OSError(errno.EADDRNOTAVAIL, "no source address reaches this broker")
    for source in sources.in_turn():
        try:
            connection = await _connected(loop, broker, source)
        except OSError as error:
            if error.errno != errno.EADDRNOTAVAIL:
                raise
            shortage = error
        else:
            return await _attached(loop, protocol_factory, connection)
    raise shortage


async def _attached(
    loop: asyncio.AbstractEventLoop, protocol_factory: Callable[[], Protocol], connection: socket.socket
) -> tuple[asyncio.Transport, Protocol]:
    try:
        return await loop.create_connection(protocol_factory, sock=connection)
    except BaseException:
        connection.close()
        raise


async def _connected(loop: asyncio.AbstractEventLoop, broker: Broker, source: str) -> socket.socket:
    family = _family(source)
    address = await _address(loop, broker, family)
    connection = socket.socket(family, socket.SOCK_STREAM)
    try:
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if sys.platform == "linux":
            connection.setsockopt(socket.IPPROTO_IP, _IP_BIND_ADDRESS_NO_PORT, 1)
        connection.bind((source, 0))
        await loop.sock_connect(connection, address)
    except BaseException:
        connection.close()
        raise
    return connection


async def _address(loop: asyncio.AbstractEventLoop, broker: Broker, family: socket.AddressFamily) -> tuple[str, int]:
    """The broker's, in the family of the source; EADDRNOTAVAIL where it has none there."""
    try:
        if _family(broker.host) == family:
            return broker.host, broker.port
    except ValueError:  # a name
        found = await loop.getaddrinfo(broker.host, broker.port, type=socket.SOCK_STREAM)
        for each, _, _, _, address in found:
            if each == family:
                return str(address[0]), int(address[1])
    raise OSError(errno.EADDRNOTAVAIL, f"{broker.name} has no address of the kind of this source")


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ipaddress.ip_address(address).version == 6 else socket.AF_INET


def check_sources(addresses: Sequence[str]) -> None:
    """Before the first client: each has to be an address of this machine, named once."""
    place = "The gateway's setting source_addresses"
    for address in addresses:
        try:
            family = _family(address)
        except ValueError:
            raise UserError(
                f"{place} names {address!r}, which is no IP address: give addresses of this machine."
            ) from None
        with socket.socket(family, socket.SOCK_STREAM) as tried:
            try:
                tried.bind((address, 0))
            except OSError:
                remedy = "add it to an interface, or leave it out"
                raise UserError(f"{place} names {address}, which is no address of this machine: {remedy}.") from None
    if len({ipaddress.ip_address(address) for address in addresses}) != len(addresses):
        raise UserError(f"{place} names an address twice: name each once.")


def ephemeral_ports() -> int:
    """How many ports the kernel may choose from for connections of its own."""
    try:
        low, high = map(int, PORT_RANGE.read_text(encoding="ascii").split())
    except (OSError, ValueError):
        return PORTS_ELSEWHERE
    return high - low + 1


def ports_sentence(connections_max: int, processes: int, *, brokers: int, sources: int, ports: int) -> str | None:
    """What to say at start where more clients may come than there are local ports for; None where all have one.

    Processes share the ports of their machine, and connections to several brokers do not.
    """
    wanted, possible = connections_max * processes, ports * max(1, sources) * max(1, brokers)
    if wanted <= possible:
        return None
    per_process = f" in each of {processes} processes" if processes > 1 else ""
    addresses = "one local address" if sources <= 1 else f"{sources} local addresses"
    to = "one broker" if brokers <= 1 else f"{brokers} brokers"
    return (
        f"connections_max is {connections_max:,}{per_process}, but {ports:,} local ports allow {possible:,} "
        f"connections from {addresses} to {to}: name more addresses of this machine in source_addresses, widen the "
        "range of local ports (net.ipv4.ip_local_port_range), or lower connections_max."
    )
