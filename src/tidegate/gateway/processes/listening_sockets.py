"""The listening sockets of a gateway of several processes: a set for every process, with a socket of each listener.

The kernel spreads connections over sockets that share a port evenly, whatever the processes behind them do; over
processes that share one socket it does not (of 500 connections that came at once, one of four processes took 313 to 328
of them; with a socket each, the most were 139). The supervisor keeps the sockets open, so connections that wait at one
whose process dies are not lost. Requests by HTTP are short: there all processes share one socket.
"""

import socket

import msgspec

from tidegate.gateway.layers import sockets
from tidegate.gateway.listening import BACKLOG, Bound, bind
from tidegate.gateway.settings import GatewaySettings


def open_listener_sets(settings: GatewaySettings) -> list[list[Bound]]:
    """For each process the sockets of all listeners, in the same order."""
    first = bind(_with_ports(settings), reuse_port=True)
    return [first, *([_another(one) for one in first] for _ in range(settings.processes - 1))]


def _with_ports(settings: GatewaySettings) -> GatewaySettings:
    """With the ports that are free: a port that is in use would be shared with whom it belongs to."""
    tried = bind(settings)
    ports = iter([one.address[1] for one in tried])
    for one in tried:
        one.sock.close()
    return msgspec.structs.replace(
        settings,
        port=next(ports) if settings.plain_mqtt else settings.port,
        http_port=next(ports) if settings.plain_http else settings.http_port,
        listeners=tuple(msgspec.structs.replace(listener, port=next(ports)) for listener in settings.listeners),
    )


def _another(bound: Bound) -> Bound:
    if bound.listener.protocol == "http":
        return bound
    beside = socket.socket(bound.sock.family, socket.SOCK_STREAM)
    beside.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    beside.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    sockets.notice_dead_peers(beside)
    beside.bind(bound.sock.getsockname())
    beside.listen(BACKLOG)
    return Bound(bound.listener, beside)
