"""``tidegate gateway``: one gateway, until stopped."""

import asyncio
import os
import resource
import signal
import sys
from typing import Annotated

import msgspec
import typer

from tidegate.bus.installation import load_installation
from tidegate.cli.options import STATE, Config, State
from tidegate.cli.parent import stop_with_parent
from tidegate.gateway.dialling_from import check_sources, ephemeral_ports, ports_sentence
from tidegate.gateway.settings import GatewaySettings
from tidegate.model.installation import Installation
from tidegate.settings.tree import Settings, load, with_options

SPARE_FILES = 256  # listeners, the bus, HTTP, libraries


def run(
    *,
    name: Annotated[str | None, typer.Option(help="A name no other gateway has.")] = None,
    state: State = STATE,
    config: Config = None,
    port: Annotated[int | None, typer.Option(help="For MQTT devices; 0 takes a free one.")] = None,
    http_port: Annotated[int | None, typer.Option(help="For HTTP ingest; 0 takes a free one.")] = None,
    processes: Annotated[int | None, typer.Option(help="How many processes share its ports.")] = None,
    ends_with_parent: Annotated[bool, typer.Option(hidden=True)] = False,
) -> None:
    """Run one gateway: devices connect to it, and it gives them to the brokers.

    SIGHUP replaces its processes by new ones, SIGUSR1 lets it end; both send clients away at a pace.

    \b
    Examples:
      tidegate gateway --port 1883
      tidegate gateway --name gateway-2 --http-port 8080 --processes 4
    """
    settings = load(config)
    options = {"name": name, "port": port, "http_port": http_port, "processes": processes}
    chosen = with_options(settings.gateway, options)
    installation = load_installation(state)
    check_sources(chosen.source_addresses)
    brokers, sources = len(installation.mqtt_addresses), len(chosen.source_addresses)
    short = ports_sentence(
        chosen.connections_max, chosen.processes, brokers=brokers, sources=sources, ports=ephemeral_ports()
    )
    if short is not None:
        _say(short)
    asyncio.run(_serve(installation, _within_open_files(chosen), settings, ends_with_parent))


async def _serve(
    installation: Installation, chosen: GatewaySettings, settings: Settings, ends_with_parent: bool
) -> None:
    from tidegate.gateway.processes.supervisor import Supervisor  # noqa: PLC0415 - only this command needs it

    stopping, loop = asyncio.Event(), asyncio.get_running_loop()
    supervisor = Supervisor(installation, chosen, _say, settings.classes, settings.identity)
    had_terminal = _has_terminal()

    def stop() -> None:
        stopping.set()
        supervisor.wake()

    def hang_up() -> None:
        """An upgrade; but a terminal that is gone takes along what runs in it."""
        if had_terminal and not _has_terminal():
            stop()
        else:
            supervisor.upgrade()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    loop.add_signal_handler(signal.SIGCHLD, supervisor.wake)

    loop.add_signal_handler(signal.SIGHUP, hang_up)
    loop.add_signal_handler(signal.SIGUSR1, supervisor.drain)
    watch = loop.create_task(stop_with_parent(stopping)) if ends_with_parent else None
    try:
        await supervisor.run(stopping)
    finally:
        if watch is not None:
            watch.cancel()


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True


def _within_open_files(settings: GatewaySettings) -> GatewaySettings:
    """As many connections as files may be open: every device takes two. The usual first limit of 1,024 would be reached
    soon; where the last one is too low as well, clients are refused before files are missing."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    possible = max(1, (most - SPARE_FILES) // 2) if most != resource.RLIM_INFINITY else settings.connections_max
    if settings.connections_max <= possible:
        return settings
    _say(
        f"connections_max is {settings.connections_max:,}, and {most:,} open files allow {possible:,} per process: so "
        "many are taken. Raise the limit of open files (ulimit -n), or lower connections_max."
    )
    return msgspec.structs.replace(settings, connections_max=possible)


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201
