"""``tidegate up``: brokers, gateway, controller and processing nodes on one machine, until stopped."""

import signal
import sys
import threading
from typing import Annotated

import typer

from tidegate.cli.options import STATE, Config, State
from tidegate.local.chain import Chain
from tidegate.model.credentials import password_of
from tidegate.model.first_reading import FIRST_DEVICE
from tidegate.report.pasting import reading_line
from tidegate.settings.tree import load

CHECK_S = 1.0


def up(
    state: State = STATE,
    config: Config = None,
    nodes: Annotated[int, typer.Option(min=0, max=16, help="How many processing nodes to run.")] = 1,
    nodes_max: Annotated[
        int | None,
        typer.Option(min=1, max=16, help="How many the controller may ask for.", show_default="as many as --nodes"),
    ] = None,
    controllers: Annotated[int, typer.Option(min=1, max=3, help="How many controllers to run; one leads.")] = 1,
) -> None:
    """Start the whole system on this machine; Ctrl-C stops it and keeps the data.

    \b
    Examples:
      tidegate up
      tidegate up --nodes 2 --config tidegate.toml
      tidegate up --nodes 1 --nodes-max 3
      TIDEGATE_BROKER__NODES=3 tidegate up --state /srv/tidegate
    """
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    _say("Starting the brokers (loopback only; Ctrl-C stops everything).")
    with Chain(
        state, load(config), _say, nodes=nodes, nodes_max=nodes_max, controllers=controllers, config=config
    ) as chain:
        chain.start_brokers()
        _tell_addresses(chain)
        chain.start_parts()
        while not stopping.is_set():
            chain.watch()
            stopping.wait(CHECK_S)
        _say("Stopping.")


def _tell_addresses(chain: Chain) -> None:
    installation = chain.installation
    assert installation.gateway_mqtt is not None
    assert installation.gateway_http is not None
    assert installation.web is not None
    (host, mqtt), http, web = installation.gateway_mqtt, installation.gateway_http[1], installation.web[1]
    _say(f"Devices connect with MQTT at {host}:{mqtt}, topic telemetry/<device>, or POST to {host}:{http}.")
    first = password_of(chain.keys.current, FIRST_DEVICE, 1)
    _say(f"A first reading: {reading_line(installation.gateway_mqtt, FIRST_DEVICE, first, FIRST_DEVICE)}")
    _say("Passwords for more devices: tidegate device add NAME.")
    _say(f"Dashboard: http://{host}:{web}/?token={installation.token}")
    _say(f"Tables grow in {installation.tables}.")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201
