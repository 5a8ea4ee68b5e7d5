"""One gateway process: its listeners, HTTP ingest, and what it hears from and tells the control bus."""

import asyncio
import contextlib
import random
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from tidegate.bus.documents import ADVICE, ROUTES, Document
from tidegate.bus.watching import Watcher
from tidegate.gateway.connection.advising import AdviceInForce
from tidegate.gateway.connection.noting import Noted
from tidegate.gateway.device_side import DeviceSide
from tidegate.gateway.gate import Gate
from tidegate.gateway.http import build_app
from tidegate.gateway.http_connections import HttpServer
from tidegate.gateway.identity.following import WATCHED, Following
from tidegate.gateway.identity.judging import Identities
from tidegate.gateway.identity.settings import IdentitySettings
from tidegate.gateway.ingest import Ingest
from tidegate.gateway.ledger_reports import LedgerReports
from tidegate.gateway.listening import Bound, bind, first_address, serve
from tidegate.gateway.routing import Router
from tidegate.gateway.settings import GatewaySettings
from tidegate.gateway.shared import layout
from tidegate.gateway.shared.memory import Shared
from tidegate.gateway.shared.peers import Peers
from tidegate.gateway.shared.reporting import report
from tidegate.machine.tasks import end
from tidegate.model.classes import DEFAULT_CLASSES, DeviceClass
from tidegate.model.clients import CLIENTS_SUBJECT
from tidegate.model.errors import DamagedDocumentError
from tidegate.model.installation import Installation
from tidegate.model.routes import Broker, Routes
from tidegate.mqtt import client as mqtt

# How long a start waits for the bus, and a stop for what is buffered.
BUS_S_MAX = 2.0
CLOSE_S_MAX = 0.5
LOOK_S = 1.0
TELLS_PER_LOOK = 10

Say = Callable[[str], None]


class Gateway:
    """``start`` opens the listeners, ``stop`` closes them and everything behind. Belongs to one event loop.

    Alone it is a whole gateway. As one process of several it is given the memory they share, its own row there, its
    sockets, and how to ask the others. Where ``strict``, it does not start with a file of identities that is damaged.
    """

    def __init__(
        self,
        installation: Installation,
        settings: GatewaySettings,
        say: Say,
        classes: Sequence[DeviceClass] = DEFAULT_CLASSES,
        identity: IdentitySettings | None = None,
        *,
        shared: Shared | None = None,
        slot: int = 0,
        bound: Sequence[Bound] | None = None,
        peers: Peers | None = None,
        strict: bool = True,
    ) -> None:
        self.mqtt_address = ("", 0)
        self.http_address = ("", 0)
        self._alone = shared is None
        self._knows_advice = False
        self._shared = shared or Shared.alone(buckets=len(settings.limits), clients_max=settings.sticky_clients_max)
        self._bound = bound
        self._default_routes = routes_of(installation)
        process = self._shared.rows[slot].cells[layout.PROCESS]
        ties = random.Random(f"{settings.name}/{process}")  # noqa: S311 - it spreads load
        router = Router(self._default_routes, self._shared, ties, slot=slot)
        self._settings = settings
        self._say = say
        # Without a log nothing of what is acknowledged reaches tables: there is nothing to compare.
        noted = Noted() if settings.ledger and installation.slices else None
        self._identities = Identities(identity or IdentitySettings(), None, time.time, strict=strict)
        self.gate = Gate(
            settings,
            router,
            AdviceInForce(time.monotonic),
            classes,
            shared=self._shared,
            slot=slot,
            peers=peers,
            noted=noted,
            identities=self._identities,
            knows_revoked=lambda: self._following.knows_revoked,
            own=(installation.mqtt_user, installation.mqtt_password),
            probe=mqtt.encode_connect(
                f"/tidegate/{settings.name}/asks/{process}",
                user=installation.mqtt_user,
                password=installation.mqtt_password,
            ),
        )
        self._watcher = Watcher(
            installation.control_urls,
            (ROUTES, ADVICE, *WATCHED),
            self._changed,
            self._damaged,
            name=f"tidegate-{settings.name}",
        )
        self._following = Following(self._identities, self._watcher.get, self.gate.clients.judge_again)
        self._is_behind = asyncio.Event()
        self._watcher.answer(CLIENTS_SUBJECT, self._said_of)
        self._reports = (
            LedgerReports(noted, self._watcher, gateway=settings.name, process=process) if noted is not None else None
        )
        self._ingest = Ingest(
            installation,
            router,
            self.gate.counters,
            client_id=f"/tidegate/{settings.name}/http/{process}",
            timeout_s=settings.http_timeout_s,
            in_flight_max=settings.http_requests_max,
            sources=self.gate.sources,
            noted=noted,
        )
        self._app = build_app(self._ingest, self.gate)
        self._https: list[HttpServer] = []
        self._listeners: list[asyncio.Server] = []
        self._tasks: list[asyncio.Task[None]] = []
        self.looking: asyncio.Task[None] | None = None  # without it nothing is right any more

    async def start(self) -> None:
        """Listen. What the bus knows is waited for a little: without it the installation's own brokers are used."""
        loop = asyncio.get_running_loop()
        with contextlib.ExitStack() as opened:
            bound = self._bound if self._bound is not None else bind(self._settings)
            for one in bound:
                opened.enter_context(one.sock)
            self.mqtt_address = first_address(bound, "mqtt", "websocket")
            self.http_address = first_address(bound, "http")
            self._watcher.start()
            if not await self._watcher.first_read(BUS_S_MAX):
                self._say(f"The control bus does not answer: until it does, {self._without_bus}.")
            self._tasks.append(loop.create_task(self._follow_identities()))
            self._ingest.start()
            self.gate.start()
            for one in bound:
                if one.listener.protocol == "http":
                    self._serve_http(one)
                else:
                    self._listeners.append(await self.open(one))
            opened.pop_all()
        self.looking = loop.create_task(self._look())
        self._tasks.append(self.looking)
        if self._reports is not None:
            self._tasks.append(loop.create_task(self._reports.run()))
        if self._alone:
            address = f"{self.mqtt_address[0]}:{self.mqtt_address[1]}"
            self._tasks.append(
                loop.create_task(report(self._watcher, self._settings.name, lambda: self.gate.state(address)))
            )

    async def open(self, bound: Bound) -> asyncio.Server:
        """Accept devices at one more listener."""
        return await serve(bound, self._settings, lambda: DeviceSide(self.gate))

    def _serve_http(self, bound: Bound) -> None:
        self._https.append(HttpServer(self._app, bound, self._settings, self.gate))
        self._tasks.append(asyncio.get_running_loop().create_task(self._https[-1].serve(sockets=[bound.sock])))

    async def drain(self, drain_s: float) -> None:
        """Accept no more devices, and send those that are here away, evenly over the time."""
        self._close_listeners()
        await self.gate.drain(drain_s)

    async def stop(self) -> None:
        """Stop listening, close every connection, let go of the bus. Safe to call after a start that failed."""
        self._close_listeners()
        self.gate.close_all()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=CLOSE_S_MAX, return_when=asyncio.FIRST_COMPLETED)
        self.gate.abort_all()
        await end(*self._tasks)
        if self._reports is not None:
            await self._reports.finish()
        self._tell()
        await self.gate.stop()
        await self._ingest.stop()
        await self._identities.close()
        await self._watcher.stop()

    def _close_listeners(self) -> None:
        for listener in self._listeners:
            listener.close()
        for server in self._https:
            server.should_exit = True

    async def _look(self) -> None:
        while True:
            for _ in range(TELLS_PER_LOOK):
                await asyncio.sleep(LOOK_S / TELLS_PER_LOOK)
                self._tell()
            await self.gate.look()
            self._look_at_identities()

    def _look_at_identities(self) -> None:
        found = self._identities.look(time.time(), self.gate.clients.is_here)
        for sentence in found.sentences:
            self._say(sentence)
        if found.everybody or found.names:
            self.gate.clients.judge_again(None if found.everybody else found.names)

    def _tell(self) -> None:
        self.gate.tell()
        if self._reports is not None:
            self._reports.tell(self.gate.counters)

    def _changed(self, document: Document[Any], value: Any, revision: int, written_s: float) -> None:
        if document is ADVICE:
            # What stood there when the gateway began may have lapsed long ago; after that it comes at once.
            age_s = 0.0 if self._knows_advice else time.time() - written_s
            self._knows_advice = True
            self.gate.advice.renew(value, revision, age_s)
        elif document is ROUTES:
            self.gate.router.routes = self._default_routes if value is None else value
        else:
            self._following.changed(document, value)
            self._is_behind.set()

    def _said_of(self, name: bytes) -> bytes | None:
        """What this process has to say of a client, to whoever asks; nothing where it has none of that name."""
        found = self.gate.clients.answer_about(name.decode(errors="replace"))
        return None if found is None else msgspec.json.encode(found)

    async def _follow_identities(self) -> None:
        while True:
            self._is_behind.clear()
            for sentence in await self._following.catch_up():
                self._say(sentence)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await self._is_behind.wait()

    @property
    def _without_bus(self) -> str:
        if self._identities.needs_bus:
            return "nobody can prove who it is, and no client is let in"
        return "clients go to the installation's brokers"

    def _damaged(self, error: DamagedDocumentError) -> None:
        """What cannot be read changes nothing: the last good routes stay, and the last good advice lapses by itself."""
        self._say(f"{error} {self._following.damaged(error)}".rstrip())


def routes_of(installation: Installation) -> Routes:
    """The routes where nobody has said any: every broker of the installation, with the same weight."""
    brokers = enumerate(installation.mqtt_addresses, start=1)
    return Routes(
        brokers=tuple(Broker(name=f"broker-{number}", host=host, port=port) for number, (host, port) in brokers)
    )
