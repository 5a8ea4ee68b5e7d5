"""``tidegate controller``: one controller and its dashboard, until stopped."""

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import Annotated

import typer

from tidegate.bus.installation import load_installation
from tidegate.cli.options import STATE, Config, State
from tidegate.cli.parent import stop_with_parent
from tidegate.controller.server import Controller
from tidegate.settings.tree import load, with_options
from tidegate.web.settings import WebSettings

Part = Callable[[asyncio.Event], Awaitable[None]]


def run(
    name: Annotated[str | None, typer.Option(help="A name no other controller has.")] = None,
    state: State = STATE,
    config: Config = None,
    web_port: Annotated[
        int | None, typer.Option(help="Port of dashboard, API and metrics; 0 takes a free one.")
    ] = None,
    ends_with_parent: Annotated[bool, typer.Option(hidden=True)] = False,
) -> None:
    """Run one controller: it measures the chain and advises devices. Several may run; one acts, the others wait.

    \b
    Examples:
      tidegate controller
      tidegate controller --name controller-2
    """
    settings = load(config)
    chosen = with_options(settings.controller, {"name": name})
    installation = load_installation(state)
    controller = Controller(installation, chosen, classes=settings.classes, title=state.resolve().name, say=_say)
    parts: list[Part] = [controller.run]
    if installation.token or web_port is not None:
        parts.append(_web(controller, with_options(settings.web, {"port": web_port}), installation.token))
    if ends_with_parent:
        parts.append(stop_with_parent)
    asyncio.run(_together(parts))


def _web(controller: Controller, settings: WebSettings, token: str) -> Part:
    from tidegate.web.server import serve  # noqa: PLC0415 - slow to import, and needed only where somebody looks

    def ready(address: tuple[str, int]) -> None:
        _say(f"Dashboard at http://{address[0]}:{address[1]} (its token is in installation.json).")

    async def serve_web(stop: asyncio.Event) -> None:
        await serve(
            controller.view,
            controller.set_mode,
            first_reading=controller.devices.first_reading,
            look_up=controller.devices.look_up,
            host=settings.host,
            port=settings.port,
            token=token,
            stop=stop,
            ready=ready,
        )

    return serve_web


async def _together(parts: list[Part]) -> None:
    """Run all parts until a signal; whichever ends, ends the others."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    tasks = [asyncio.ensure_future(part(stop)) for part in parts]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    stop.set()
    await asyncio.gather(*tasks)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201
