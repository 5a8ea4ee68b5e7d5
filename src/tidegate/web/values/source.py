"""Where the pages and the API get their values, handed to them with each request."""

from collections.abc import Awaitable, Callable, Mapping

import msgspec
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from tidegate.model.clients import DeviceReport
from tidegate.model.decisions import Mode
from tidegate.model.devices import check_device
from tidegate.model.errors import BrokerUnavailableError
from tidegate.model.first_reading import FirstReading
from tidegate.model.view import Sample, View
from tidegate.web.values.gateway_history import GatewayHistory
from tidegate.web.values.node_history import NodeHistory

_SCOPE_KEY = "tidegate.source"


def no_past() -> tuple[Sample, ...]:
    return ()


def no_first_reading() -> FirstReading | None:
    return None


async def nobody_to_ask(name: str) -> DeviceReport:
    raise BrokerUnavailableError(f"Nobody can be asked about {name} here: start the dashboard with 'tidegate up'.")


class Source:
    """The view, the way to set the mode, and a past run that charts draw behind the current one.

    A first reading has a password in it, so it is no part of the view: pages show it, the API and the metrics do not.

    The past run is what ``past`` gives, moved to where this run began; or, once ``remember`` was called, the stretch of
    this installation's own samples that it named, moved to the moment of the call.
    """

    def __init__(
        self,
        view: Callable[[], View],
        set_mode: Callable[[Mapping[str, object]], Awaitable[Mode]],
        past: Callable[[], tuple[Sample, ...]] = no_past,
        first_reading: Callable[[], FirstReading | None] = no_first_reading,
        look_up: Callable[[str], Awaitable[DeviceReport]] = nobody_to_ask,
    ) -> None:
        self._view = view
        self.set_mode = set_mode
        self._past = past
        self.first_reading = first_reading
        self._look_up = look_up
        self._remembered: tuple[Sample, ...] = ()
        self._start_s: float | None = None
        self.gateways = GatewayHistory()
        self.nodes = NodeHistory()

    def view(self) -> View:
        view = self._view()
        # The view forgets its oldest samples after a while, so the beginning is noted when it is first seen.
        if self._start_s is None and view.samples:
            self._start_s = view.samples[0].at_s
        self.gateways.follow(view.chain.gateways)
        if view.now is not None:
            self.nodes.follow(view.chain, view.now.at_s)
        return view

    async def look_up(self, name: str) -> DeviceReport:
        """What is known of one device now: gateways are asked."""
        check_device(name)
        return await self._look_up(name)

    def past(self) -> tuple[Sample, ...]:
        if self._remembered:
            return self._remembered
        return shifted(self._past(), self._start_s) if self._start_s is not None else ()

    def remember(self, from_s: float, to_s: float, now_s: float) -> int:
        """Keep what was measured between two moments as the past run; how many samples that are."""
        stretch = tuple(sample for sample in self.view().samples if from_s <= sample.at_s <= to_s)
        self._remembered = shifted(stretch, now_s)
        return len(stretch)


def shifted(run: tuple[Sample, ...], start_s: float) -> tuple[Sample, ...]:
    """A run, moved in time to begin at this moment."""
    return tuple(msgspec.structs.replace(sample, at_s=sample.at_s - run[0].at_s + start_s) for sample in run)


class SourceCarrier:
    """An ASGI application around another. NiceGUI has one application per process, so values travel with requests."""

    def __init__(self, app: ASGIApp, source: Source) -> None:
        self._app = app
        self._source = source

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app({**scope, _SCOPE_KEY: self._source}, receive, send)


def source_of(connection: HTTPConnection) -> Source:
    source = connection.scope[_SCOPE_KEY]
    assert isinstance(source, Source)
    return source
