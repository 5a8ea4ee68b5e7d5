"""Ports on this machine's loopback address that a server could listen on."""

import random
import socket

from tidegate.model.errors import TidegateError

HOST = "127.0.0.1"
# Below the range from which the kernel takes the ports of outgoing connections: a client that keeps dialling
# a dead server's port could otherwise be given that very port, connect to itself, and block the server's return.
FREE_PORTS = range(20_000, 32_000)


def is_free(port: int) -> bool:
    """Whether a server could listen there now. Connections that linger after a close do not count."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
            probe.listen(1)
        except OSError:
            return False
    return True


def free_port(taken: set[int]) -> int:
    for port in random.SystemRandom().sample(FREE_PORTS, 200):
        if port not in taken and is_free(port):
            return port
    raise TidegateError(
        f"No free port found on {HOST} between {FREE_PORTS.start} and {FREE_PORTS.stop}: end the programs that "
        "hold them."
    )
