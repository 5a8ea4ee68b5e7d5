"""The servers of the benchmarks, each a real process: Mosquitto behind, and before it HAProxy, a forwarder
or a gateway."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil

from tidegate.local.process import LocalProcess
from tidegate.local.waiting import answers, wait_until
from tidegate.machine.ports import HOST, free_port
from tidegate.machine.spawning import Spawner
from tidegate.model.errors import TidegateError
from tidegate_bench.rig.certificates import Certificate
from tidegate_bench.rig.credentials import save_through, settle_keys
from tidegate_bench.rig.programs import installed
from tidegate_bench.rig.toml import to_toml

READY_S_MAX = 30.0
STOP_S_MAX = 10.0
LOOK_S = 0.02
CONNECTIONS_MAX = 9_000

MOSQUITTO = """\
listener {port} {host}
allow_anonymous true
persistence false
set_tcp_nodelay true
max_connections -1
connection_messages false
log_dest stderr
log_type error
user {user}
"""

# What a deployment in front of MQTT brokers uses: only MQTT passes, and a client comes back to its broker.
HAPROXY = """\
global
  maxconn {connections_max}
  nbthread 1
  nosplice
defaults
  mode tcp
  timeout connect 5s
  timeout client 1h
  timeout server 1h
  option tcp-smart-accept
frontend devices
  bind {host}:{port}
  bind {host}:{tls_port} ssl crt {certificate} ssl-min-ver TLSv1.3
  tcp-request inspect-delay 5s
  tcp-request content reject unless {{ req.payload(0,0),mqtt_is_valid }}
  default_backend brokers
backend brokers
  stick-table type string len 64 size 100k expire 1h
  stick on req.payload(0,0),mqtt_field_value(connect,client_identifier)
  server broker-1 {broker_host}:{broker_port}
"""


class ServerProcess(LocalProcess):
    """One of the processes under test, with everything it started. ``tls_port`` is 0 where there is no TLS; ``state``
    says as whom clients come to a gateway."""

    def __init__(
        self, name: str, command: list[str], log: Path, spawner: Spawner, *, port: int, tls_port: int = 0
    ) -> None:
        super().__init__(name, command, log=log)
        self.port, self.tls_port = port, tls_port
        self.state: Path | None = None
        self._path, self._spawner = log, spawner

    @property
    def address(self) -> tuple[str, int]:
        return HOST, self.port

    def start(self) -> None:
        self._process: subprocess.Popen[bytes] | None = self._spawner.spawn(self._command, self._path)

    def await_ready(self, words: str) -> None:
        """It has said the words, where there are any, and listens. A gateway listens before all its processes serve."""
        ports = [port for port in (self.port, self.tls_port) if port]

        def is_ready() -> bool:
            if not self.is_running:
                raise TidegateError(f"{self.name} ended while starting: {self.last_words()} (log: {self._path})")
            said = self._path.read_text(errors="replace")
            return words in said and all(answers((HOST, port), timeout_s=1.0) for port in ports)

        if not wait_until(is_ready, READY_S_MAX, LOOK_S):
            raise TidegateError(
                f"{self.name} is not ready within {READY_S_MAX:.0f} s: {self.last_words()} (log: {self._path})"
            )


class Starter:
    """Starts servers in one directory; none of them outlives this process."""

    def __init__(self, directory: Path, spawner: Spawner) -> None:
        self._directory = directory
        self._spawner = spawner
        self._taken: set[int] = set()

    @contextlib.contextmanager
    def mosquitto(self) -> Iterator[ServerProcess]:
        binary = installed("mosquitto")
        port = self.free_port()
        config = self._write("mosquitto.conf", MOSQUITTO.format(host=HOST, port=port, user=psutil.Process().username()))
        with self.started("mosquitto", [binary, "-c", str(config)], port) as server:
            yield server

    @contextlib.contextmanager
    def haproxy(self, broker: tuple[str, int], certificate: Certificate) -> Iterator[ServerProcess]:
        binary = installed("haproxy")
        port, tls_port = self.free_port(), self.free_port()
        text = HAPROXY.format(
            connections_max=CONNECTIONS_MAX,
            host=HOST,
            port=port,
            tls_port=tls_port,
            certificate=certificate.both,
            broker_host=broker[0],
            broker_port=broker[1],
        )
        config = self._write("haproxy.cfg", text)
        with self.started("haproxy", [binary, "-db", "-f", str(config)], port, tls_port) as server:
            yield server

    @contextlib.contextmanager
    def forwarder(self, broker: tuple[str, int], processes: int = 1) -> Iterator[ServerProcess]:
        port = self.free_port()
        command = [sys.executable, "-m", "tidegate_bench.rig.forwarder", "--port", str(port)]
        command += ["--broker-host", broker[0], "--broker-port", str(broker[1]), "--processes", str(processes)]
        with self.started("forwarder", command, port) as server:
            yield server

    @contextlib.contextmanager
    def gateway(
        self,
        state: Path,
        settings: Mapping[str, Any] | None = None,
        certificate: Certificate | None = None,
        sources: Path | None = None,
        identity: Mapping[str, Any] | None = None,
    ) -> Iterator[ServerProcess]:
        """A gateway for the installation in ``state``, which judges its clients as it does by default, unless
        ``identity`` says otherwise; with a certificate it has a listener for TLS as well. With ``sources`` it runs the
        code of another checkout."""
        port, tls_port = self.free_port(), self.free_port() if certificate else 0
        own = {"port": port, "connections_max": CONNECTIONS_MAX, **(settings or {})}
        if certificate is not None:
            own["listeners"] = [
                {"port": tls_port, "certificate": str(certificate.certificate), "key": str(certificate.key)}
            ]
        sections = {"gateway": own, **({} if identity is None else {"identity": identity})}
        config = self._write(f"gateway-{port}.toml", "\n".join(_lines(sections)))
        settle_keys(state)
        command = [sys.executable, "-m", "tidegate.cli.main", "gateway", "--name", f"bench-{port}"]
        command += ["--state", str(state), "--config", str(config)]
        if sources is not None:
            command = ["env", f"PYTHONPATH={sources}", *command]
        with self.started("tidegate", command, port, tls_port, words=" is ready at ") as server:
            server.state = save_through(state, server.address, self._directory / f"through-{port}")
            yield server

    @contextlib.contextmanager
    def started(
        self, name: str, command: list[str], port: int, tls_port: int = 0, *, words: str = ""
    ) -> Iterator[ServerProcess]:
        """A server that listens at its ports, and has said the words, until the block is left."""
        log = self._directory / f"{name}-{port}.log"
        server = ServerProcess(name, command, log, self._spawner, port=port, tls_port=tls_port)
        server.start()
        try:
            server.await_ready(words)
            yield server
        finally:
            server.stop(STOP_S_MAX)

    def free_port(self) -> int:
        port = free_port(self._taken)
        self._taken.add(port)
        return port

    def _write(self, name: str, text: str) -> Path:
        path = self._directory / name
        path.write_text(text)
        return path


def _lines(sections: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for name, settings in sections.items():
        yield f"[{name}]"
        yield from (f"{key} = {to_toml(value)}" for key, value in settings.items())
        yield ""


@contextlib.contextmanager
def starter(directory: Path) -> Iterator[Starter]:
    spawner = Spawner()
    try:
        yield Starter(directory, spawner)
    finally:
        spawner.close()
