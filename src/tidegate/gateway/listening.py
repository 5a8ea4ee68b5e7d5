"""The listeners of a gateway: sockets that are bound, and what stands behind each of them."""

import asyncio
import errno
import socket
from collections.abc import Callable, Sequence
from typing import cast

import msgspec

from tidegate.gateway.layers import sockets, tls
from tidegate.gateway.layers.layer import Layer
from tidegate.gateway.layers.layered import Inner, Layered
from tidegate.gateway.layers.listener import Listener
from tidegate.gateway.layers.proxy import ProxyHeader
from tidegate.gateway.layers.websocket import WebSocket
from tidegate.gateway.settings import GatewaySettings
from tidegate.model.errors import UserError

BACKLOG = 1024


class Bound(msgspec.Struct, frozen=True):
    listener: Listener
    sock: socket.socket

    @property
    def address(self) -> tuple[str, int]:
        host, port = self.sock.getsockname()[:2]
        return host, port


def bind(settings: GatewaySettings, *, reuse_port: bool = False) -> list[Bound]:
    """Every socket, listening: that for MQTT, that for HTTP, then the listeners in their order. All of them or none.

    Certificates are read here as well, so that a wrong one is said before the first process starts.
    """
    listeners = _listeners(settings)
    if not any(listener.protocol != "http" for listener in listeners.values()):
        raise UserError(
            "The gateway's setting plain_mqtt closes its only listener for MQTT: add one to listeners, or open it."
        )
    bound: list[Bound] = []
    try:
        for name, listener in listeners.items():
            place = f"The gateway's setting {name}"
            _check(listener, place)
            host = settings.host if listener.host is None else listener.host
            bound.append(Bound(listener, _bind(host, listener.port, place, reuse_port=reuse_port)))
    except BaseException:
        for one in bound:
            one.sock.close()
        raise
    return bound


def _listeners(settings: GatewaySettings) -> dict[str, Listener]:
    """By the setting that each comes from."""
    plain = {
        "port": (settings.plain_mqtt, Listener(port=settings.port)),
        "http_port": (settings.plain_http, Listener(port=settings.http_port, protocol="http")),
    }
    found = {name: listener for name, (is_open, listener) in plain.items() if is_open}
    return found | {f"listeners, number {number}": one for number, one in enumerate(settings.listeners, start=1)}


def first_address(bound: Sequence[Bound], *protocols: str) -> tuple[str, int]:
    """Where such clients connect; nowhere, if no listener is for them."""
    return next((one.address for one in bound if one.listener.protocol in protocols), ("", 0))


async def serve(bound: Bound, settings: GatewaySettings, make_device: Callable[[], Inner]) -> asyncio.Server:
    """Accept devices at a listener. Where it is plain there is nothing between the socket and the device."""
    make_layers = _layers(bound.listener, settings)

    def make() -> asyncio.Protocol:
        if not make_layers:
            return cast(asyncio.Protocol, make_device())
        return Layered(make_device(), [make_layer() for make_layer in make_layers])

    return await asyncio.get_running_loop().create_server(make, sock=bound.sock, backlog=BACKLOG)


def _layers(listener: Listener, settings: GatewaySettings) -> list[Callable[[], Layer]]:
    """What makes each layer of a connection, that next to the wire first."""
    layers: list[Callable[[], Layer]] = []
    if listener.proxy_protocol:
        layers.append(ProxyHeader)
    if listener.certificate is not None:
        context = tls.context_of(listener)
        layers.append(lambda: tls.Tls(context))
    if listener.protocol == "websocket":
        layers.append(lambda: WebSocket(settings.packet_bytes_max))
    return layers


def _check(listener: Listener, place: str) -> None:
    if (listener.certificate is None) != (listener.key is None):
        there, missing = ("key", "certificate") if listener.certificate is None else ("certificate", "key")
        raise UserError(f"{place} has a {there} but no {missing}: TLS takes both, give the {missing}'s PEM file too.")
    if listener.client_ca is not None and listener.certificate is None:
        remedy = "give the gateway's own certificate and key too"
        raise UserError(f"{place} has a client_ca but is not TLS: {remedy}.")
    if listener.proxy_protocol and listener.protocol == "http":
        raise UserError(f"{place} is HTTP, which reads no PROXY header: leave proxy_protocol out.")
    if listener.certificate is not None:
        tls.context_of(listener)


def _bind(host: str, port: int, place: str, *, reuse_port: bool) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sockets.notice_dead_peers(bound)
    if reuse_port:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        bound.bind((host, port))
        bound.listen(BACKLOG)
    except OSError as error:
        bound.close()
        if error.errno == errno.EADDRINUSE:
            remedy = "stop the program that listens there, or choose another (0 takes a free one)"
            raise UserError(f"{place}: {host}:{port} is in use: {remedy}.") from None
        raise UserError(f"{place}: {host}:{port} cannot be listened on ({error.strerror}): choose another.") from None
    return bound
