"""``tidegate gateway``: one gateway, until stopped."""

import asyncio
import resource
import signal
import sys
from typing import Annotated

import typer

from tidegate.cli.options import STATE, Config, State
from tidegate.cli.parent import stop_with_parent
from tidegate.gateway.settings import GatewaySettings
from tidegate.model.classes import DeviceClass
from tidegate.model.installation import Installation
from tidegate.settings import load, with_options


def run(
    *,
    name: Annotated[str | None, typer.Option(help="A name no other gateway has.")] = None,
    state: State = STATE,
    config: Config = None,
    port: Annotated[int | None, typer.Option(help="For MQTT devices; 0 takes a free one.")] = None,
    http_port: Annotated[int | None, typer.Option(help="For HTTP ingest; 0 takes a free one.")] = None,
    ends_with_parent: Annotated[bool, typer.Option(hidden=True)] = False,
) -> None:
    """Run one gateway: devices connect to it, and it gives them to the brokers.

    \b
    Examples:
      tidegate gateway --port 1883
      tidegate gateway --name gateway-2 --http-port 8080
    """
    import uvloop  # noqa: PLC0415 - only this command needs it

    settings = load(config)
    chosen = with_options(settings.gateway, {"name": name, "port": port, "http_port": http_port})
    installation = Installation.load(state)
    _allow_open_files()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(installation, chosen, settings.classes, ends_with_parent))


async def _serve(
    installation: Installation, settings: GatewaySettings, classes: tuple[DeviceClass, ...], ends_with_parent: bool
) -> None:
    from tidegate.gateway.server import Gateway  # noqa: PLC0415 - the web server is slow to import

    stopping, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    gateway = Gateway(installation, settings, _say, classes)
    try:
        await gateway.start()
        mqtt, http = (f"{host}:{port}" for host, port in (gateway.mqtt_address, gateway.http_address))
        _say(f"Gateway {settings.name} is ready at {mqtt} (HTTP {http}).")
        watch = loop.create_task(stop_with_parent(stopping)) if ends_with_parent else None
        await stopping.wait()
        if watch is not None:
            watch.cancel()
    finally:
        await gateway.stop()


def _allow_open_files() -> None:
    """Every device takes two open files; the usual first limit of 1,024 would be reached soon."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201
