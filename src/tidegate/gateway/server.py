"""One gateway process: the MQTT listener, HTTP ingest, and what it hears from and tells the control bus."""

import asyncio
import contextlib
import errno
import random
import socket
from collections.abc import Callable, Iterator, Sequence

import msgspec
import uvicorn

from tidegate.brokers.watching import Watcher
from tidegate.control.placement.sticky import Sticky
from tidegate.gateway.advising import AdviceInForce
from tidegate.gateway.device_side import DeviceSide
from tidegate.gateway.gate import Gate
from tidegate.gateway.http import build_app
from tidegate.gateway.ingest import Ingest
from tidegate.gateway.routing import Router
from tidegate.gateway.settings import GatewaySettings
from tidegate.model.advice import ADVICE_KEY
from tidegate.model.classes import DEFAULT_CLASSES, DeviceClass
from tidegate.model.errors import BrokerUnavailableError, UserError
from tidegate.model.installation import Installation
from tidegate.model.observations import GATEWAYS_KEY
from tidegate.model.routes import ROUTES_KEY, Broker, Routes

STATE_S = 1.0
STATE_LEASE_S = 5.0
# How long a start waits for the bus, and a stop for what is buffered.
BUS_S_MAX = 2.0
CLOSE_S_MAX = 0.5
BACKLOG = 1024

Say = Callable[[str], None]


class Gateway:
    """``start`` opens the doors, ``stop`` closes them and everything behind. Belongs to one event loop."""

    def __init__(
        self,
        installation: Installation,
        settings: GatewaySettings,
        say: Say,
        classes: Sequence[DeviceClass] = DEFAULT_CLASSES,
    ) -> None:
        self.mqtt_address = ("", 0)
        self.http_address = ("", 0)
        loop = asyncio.get_running_loop()
        sticky = Sticky(settings.sticky_clients_max)
        self._default_routes = routes_of(installation)
        router = Router(self._default_routes, sticky, random.Random(settings.name))  # noqa: S311 - spreads load
        self._settings = settings
        self._say = say
        self.gate = Gate(settings, router, AdviceInForce(loop.time), classes)
        self._watcher = Watcher(
            installation.control_urls, (ROUTES_KEY, ADVICE_KEY), self._changed, name=f"tidegate-{settings.name}"
        )
        self._ingest = Ingest(
            installation,
            router,
            self.gate.counters,
            client_id=f"tidegate-{settings.name}-http",
            timeout_s=settings.http_timeout_s,
            in_flight_max=settings.http_requests_max,
        )
        self._app = build_app(self._ingest, self.gate, installation.token)
        self._http: _HttpServer | None = None
        self._listener: asyncio.Server | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Listen. What the bus knows is waited for a little: without it the installation's own brokers are used."""
        settings, loop = self._settings, asyncio.get_running_loop()
        with contextlib.ExitStack() as opened:
            mqtt = opened.enter_context(_bind(settings.host, settings.port, "port"))
            http = opened.enter_context(_bind(settings.host, settings.http_port, "http_port"))
            self.mqtt_address, self.http_address = mqtt.getsockname()[:2], http.getsockname()[:2]
            self._watcher.start()
            if not await self._watcher.first_read(BUS_S_MAX):
                self._say("The control bus does not answer: clients go to the installation's brokers until it does.")
            self._ingest.start()
            self._listener = await loop.create_server(lambda: DeviceSide(self.gate), sock=mqtt, backlog=BACKLOG)
            self._http = _HttpServer(self._http_config())
            self._tasks.append(loop.create_task(self._http.serve(sockets=[http])))
            opened.pop_all()
        self._tasks.append(loop.create_task(self._report()))

    def _http_config(self) -> uvicorn.Config:
        return uvicorn.Config(
            self._app,
            lifespan="off",
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            limit_concurrency=self._settings.http_requests_max,
            timeout_graceful_shutdown=1,
        )

    async def stop(self) -> None:
        """Stop listening, close every connection, let go of the bus. Safe to call after a start that failed."""
        if self._listener is not None:
            self._listener.close()
        if self._http is not None:
            self._http.should_exit = True
        self.gate.close_all()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=CLOSE_S_MAX, return_when=asyncio.FIRST_COMPLETED)
        self.gate.abort_all()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._ingest.stop()
        await self._watcher.stop()

    async def _report(self) -> None:
        """What this gateway does, once a second, under a lease: who stops saying it is taken to be gone."""
        key = f"{GATEWAYS_KEY}.{self._settings.name}"
        address = f"{self.mqtt_address[0]}:{self.mqtt_address[1]}"
        while True:
            with contextlib.suppress(BrokerUnavailableError):
                state = msgspec.json.encode(self.gate.state(address))
                await self._watcher.put(key, state, lease_s=STATE_LEASE_S)
            await asyncio.sleep(STATE_S)

    def _changed(self, key: str, value: bytes | None, revision: int) -> None:
        if key == ADVICE_KEY:
            self.gate.advice.renew(value, revision)
        elif value is None:
            self.gate.router.routes = self._default_routes
        else:
            try:
                self.gate.router.routes = msgspec.json.decode(value, type=Routes)
            except msgspec.DecodeError as error:
                self._say(f"The routes on the control bus cannot be read ({error}): the last good ones stay.")


def routes_of(installation: Installation) -> Routes:
    """The routes where nobody has said any: every broker of the installation, with the same weight."""
    brokers = enumerate(installation.mqtt_addresses, start=1)
    return Routes(
        brokers=tuple(Broker(name=f"broker-{number}", host=host, port=port) for number, (host, port) in brokers)
    )


class _HttpServer(uvicorn.Server):
    """Signals belong to the process, not to one of its listeners."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _bind(host: str, port: int, setting: str) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
        bound.listen(BACKLOG)
    except OSError as error:
        bound.close()
        place = f"The gateway's setting {setting}: {host}:{port}"
        if error.errno == errno.EADDRINUSE:
            remedy = "stop the program that listens there, or choose another (0 takes a free one)"
            raise UserError(f"{place} is in use: {remedy}.") from None
        raise UserError(f"{place} cannot be listened on ({error.strerror}): choose another.") from None
    return bound
