"""Serves dashboard, API and metrics inside the caller's event loop until told to stop."""

import asyncio
import contextlib
import errno
import functools
import socket
from collections.abc import Awaitable, Callable, Iterator, Mapping

import uvicorn
from fastapi import FastAPI, Request
from nicegui import ui

from tidegate.model.clients import DeviceReport
from tidegate.model.decisions import Mode
from tidegate.model.errors import UserError
from tidegate.model.first_reading import FirstReading
from tidegate.model.view import Sample, View
from tidegate.web.access import TokenGate
from tidegate.web.api import router
from tidegate.web.page import build
from tidegate.web.values.source import Source, SourceCarrier, no_first_reading, no_past, nobody_to_ask, source_of

SHUTDOWN_S = 1  # open pages get this long to notice; their web sockets never end by themselves
MESSAGE_BYTES_MAX = 1_048_576  # of what a browser sends
FOLLOW_S = 1.0
_BACKLOG = 128


async def serve(
    view: Callable[[], View],
    set_mode: Callable[[Mapping[str, object]], Awaitable[Mode]],
    *,
    host: str,
    port: int,
    token: str,
    stop: asyncio.Event,
    ready: Callable[[tuple[str, int]], None] | None = None,
    past: Callable[[], tuple[Sample, ...]] = no_past,
    first_reading: Callable[[], FirstReading | None] = no_first_reading,
    look_up: Callable[[str], Awaitable[DeviceReport]] = nobody_to_ask,
) -> None:
    """Serve until ``stop`` is set. Port 0 takes a free one; ``ready`` hears the address once requests are answered."""
    if not token:
        raise UserError("The dashboard has no token: restart 'tidegate up', which writes one into installation.json.")
    with _listening(host, port) as listener:
        address = listener.getsockname()[:2]
        source = Source(view, set_mode, past, first_reading, look_up)
        app = TokenGate(SourceCarrier(_application(), source), token)
        # No log configuration and no access log: addresses may carry the token, and logging is the caller's.
        config = uvicorn.Config(
            app,
            access_log=False,
            log_config=None,
            lifespan="on",
            server_header=False,
            timeout_graceful_shutdown=SHUTDOWN_S,
            ws_max_size=MESSAGE_BYTES_MAX,
        )
        server = _Server(config, lambda: ready(address) if ready else None)
        tasks = [asyncio.create_task(_stop_when(stop, server)), asyncio.create_task(_follow(source))]
        try:
            await server.serve(sockets=[listener])
        finally:
            for task in tasks:
                task.cancel()


class _Server(uvicorn.Server):
    """Leaves signals to the caller, and says when it answers."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()


async def _stop_when(stop: asyncio.Event, server: uvicorn.Server) -> None:
    await stop.wait()
    server.should_exit = True


async def _follow(source: Source) -> None:
    """Look once a second even if nobody else does, so that a page that is opened has its charts at once."""
    while True:
        source.view()
        await asyncio.sleep(FOLLOW_S)


@contextlib.contextmanager
def _listening(host: str, port: int) -> Iterator[socket.socket]:
    try:
        listener = socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=_BACKLOG
        )
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise UserError(
                f"Port {port} of {host} is in use by another process: choose another port for the dashboard, or 0."
            ) from None
        raise UserError(
            f"The dashboard cannot listen on {host} port {port} ({error.strerror}): name another."
        ) from None
    with listener:
        yield listener


@functools.cache
def _application() -> FastAPI:
    """The one application of this process, as NiceGUI allows no second; servers differ in the source they carry."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    app.include_router(router)
    ui.page("/")(_dashboard)
    ui.run_with(app, title="Tidegate", dark=None, tailwind=False, show_welcome_message=False, favicon="🌊")
    return app


def _dashboard(request: Request) -> None:
    build(source_of(request))
