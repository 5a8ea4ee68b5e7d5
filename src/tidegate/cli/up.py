"""``tidegate up``: the brokers and the processing nodes on one machine, until stopped."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Annotated

import typer

from tidegate.brokers.disk_guard import DiskGuard
from tidegate.brokers.embedded import EmbeddedBrokers
from tidegate.brokers.wire import Wire
from tidegate.cli.options import STATE, Config, State
from tidegate.model.errors import BrokerUnavailableError, TidegateError
from tidegate.model.installation import Installation
from tidegate.settings import Settings, load

CHECK_S = 1.0
RESTART_S = 2.0


def up(
    state: State = STATE,
    config: Config = None,
    nodes: Annotated[int, typer.Option(min=0, max=16, help="How many processing nodes to run.")] = 1,
) -> None:
    """Start brokers and processing nodes on this machine; Ctrl-C stops them and keeps the data.

    \b
    Examples:
      tidegate up
      tidegate up --nodes 2 --config tidegate.toml
      TIDEGATE_BROKER__NODES=3 tidegate up --state /srv/tidegate
    """
    settings = load(config)
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    _say("Starting the brokers (loopback only; Ctrl-C stops everything).")
    with EmbeddedBrokers(state, settings.broker) as brokers:
        installation = brokers.installation
        assert installation is not None
        addresses = ", ".join(f"{host}:{port}" for host, port in installation.mqtt_addresses)
        _say(f"Devices connect with MQTT 3.1.1 at {addresses}, topic telemetry/<device>.")
        _say(f"User and password are in {state / 'installation.json'}, readable by you only.")
        _say(f"Tables grow in {installation.tables}.")
        _keep_running(stopping, brokers, installation, settings, _Nodes(state, config, nodes))


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201


class _Nodes:
    """The node processes: one that ends by itself is started again, after a moment."""

    def __init__(self, state: Path, config: Path | None, count: int) -> None:
        self._command = [sys.executable, "-m", "tidegate.cli.main", "node", "--ends-with-parent", "--state", str(state)]
        if config is not None:
            self._command += ["--config", str(config)]
        self._names = [f"node-{number}" for number in range(1, count + 1)]
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._not_before: dict[str, float] = {}

    def start_missing(self) -> None:
        for name in self._names:
            process = self._running.get(name)
            if process is not None and (status := process.poll()) is not None:
                if status == 2:
                    raise TidegateError(f"Node {name} cannot start: see its message above.")
                _say(f"Node {name} ended with status {status}; it is started again.")
                del self._running[name]
                self._not_before[name] = time.monotonic() + RESTART_S
            if name not in self._running and time.monotonic() >= self._not_before.get(name, 0.0):
                _say(f"Starting {name} (Spark takes some seconds).")
                # Its own group: a Ctrl-C at the terminal reaches this process, which then stops the nodes in order.
                self._running[name] = subprocess.Popen(
                    [*self._command, "--name", name], stdin=subprocess.DEVNULL, process_group=0
                )

    def stop(self) -> None:
        for process in self._running.values():
            if process.poll() is None:
                process.terminate()
        deadline = time.monotonic() + 20
        for process in self._running.values():
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def _keep_running(
    stopping: threading.Event, brokers: EmbeddedBrokers, installation: Installation, settings: Settings, nodes: _Nodes
) -> None:
    alarm: str | None = None
    with Wire(installation.data_urls, name="tidegate-up") as wire:
        guard = DiskGuard(wire, installation.monitor_urls, brokers.store_directories, settings.broker.disk_bytes_max)
        try:
            while not stopping.is_set():
                nodes.start_missing()
                try:
                    found = guard.check().alarm
                except BrokerUnavailableError as error:
                    found = str(error)
                if found != alarm:
                    _say(f"ALARM: {found}" if found else "The alarm is over.")
                    alarm = found
                stopping.wait(CHECK_S)
        finally:
            _say("Stopping.")
            nodes.stop()
