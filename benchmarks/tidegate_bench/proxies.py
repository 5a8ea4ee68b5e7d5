"""The peers of the gateway benchmarks, each a real process: Mosquitto behind, HAProxy and a gateway before it."""

import contextlib
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psutil

from tidegate.brokers.nats.embedded import free_port
from tidegate.brokers.nats.server_config import HOST
from tidegate.brokers.nats.server_process import Spawner
from tidegate.model.errors import TidegateError, UserError
from tidegate_bench import processes

READY_S_MAX = 30.0
STOP_S_MAX = 10.0
POLL_S = 0.02
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


GATEWAY = """\
[gateway]
port = {port}
connections_max = {connections_max}
"""
GATEWAY_TLS = """\
listeners = [{{port = {port}, certificate = "{certificate}", key = "{key}"}}]
"""


class Peer:
    """One of the processes under test, with everything it started. ``tls_port`` is 0 where there is no TLS."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], log: Path, port: int, tls_port: int = 0) -> None:
        self.name = name
        self.port = port
        self.tls_port = tls_port
        self._process = process
        self._log = log

    def await_ready(self, words: str) -> None:
        """It has said the words, where there are any, and listens. A gateway listens before all its processes serve."""
        deadline_s = time.monotonic() + READY_S_MAX
        ports = [port for port in (self.port, self.tls_port) if port]
        while not (words in self._log.read_text(errors="replace") and all(_listens(port) for port in ports)):
            if self._process.poll() is not None:
                raise TidegateError(f"{self.name} ended while starting: {self._last_words()}")
            if time.monotonic() > deadline_s:
                raise TidegateError(f"{self.name} is not ready within {READY_S_MAX:.0f} s: {self._last_words()}")
            time.sleep(POLL_S)

    @property
    def pid(self) -> int:
        return self._process.pid

    def stop(self) -> None:
        if self._process.poll() is not None:
            return
        family = processes.family(self.pid)
        self._process.terminate()
        try:
            self._process.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            for member in family:
                with contextlib.suppress(psutil.NoSuchProcess):
                    member.kill()
            self._process.wait()

    def _last_words(self) -> str:
        lines = self._log.read_text(errors="replace").strip().splitlines()
        return f"{lines[-1] if lines else 'it said nothing'} (log: {self._log})."


def _listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((HOST, port), timeout=1.0):
        return True
    return False


class Starter:
    """Starts peers in one directory; none of them outlives this process."""

    def __init__(self, directory: Path, spawner: Spawner) -> None:
        self._directory = directory
        self._spawner = spawner
        self._taken: set[int] = set()

    @contextlib.contextmanager
    def mosquitto(self) -> Iterator[Peer]:
        binary = installed("mosquitto")
        port = self._port()
        config = self._write("mosquitto.conf", MOSQUITTO.format(host=HOST, port=port, user=psutil.Process().username()))
        with self._started("mosquitto", [binary, "-c", str(config)], port) as peer:
            yield peer

    @contextlib.contextmanager
    def haproxy(self, broker: tuple[str, int], certificate: "Certificate") -> Iterator[Peer]:
        binary = installed("haproxy")
        port, tls_port = self._port(), self._port()
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
        with self._started("haproxy", [binary, "-db", "-f", str(config)], port, tls_port) as peer:
            yield peer

    @contextlib.contextmanager
    def gateway(self, state: Path, settings: str = "", certificate: "Certificate | None" = None) -> Iterator[Peer]:
        """A gateway for the installation in ``state``; with a certificate it has a door for TLS as well."""
        port, tls_port = self._port(), self._port() if certificate else 0
        text = GATEWAY.format(port=port, connections_max=CONNECTIONS_MAX) + settings
        if certificate is not None:
            text += GATEWAY_TLS.format(port=tls_port, certificate=certificate.certificate, key=certificate.key)
        config = self._write(f"gateway-{port}.toml", text)
        command = [sys.executable, "-m", "tidegate.cli.main", "gateway", "--name", f"bench-{port}"]
        command += ["--state", str(state), "--config", str(config)]
        with self._started("tidegate", command, port, tls_port, words=" is ready at ") as peer:
            yield peer

    @contextlib.contextmanager
    def _started(
        self, name: str, command: list[str], port: int, tls_port: int = 0, *, words: str = ""
    ) -> Iterator[Peer]:
        log = self._directory / f"{name}-{port}.log"
        peer = Peer(name, self._spawner.spawn(command, log), log, port, tls_port)
        try:
            peer.await_ready(words)
            yield peer
        finally:
            peer.stop()

    def _port(self) -> int:
        port = free_port(self._taken)
        self._taken.add(port)
        return port

    def _write(self, name: str, text: str) -> Path:
        path = self._directory / name
        path.write_text(text)
        return path


class Certificate(msgspec.Struct, frozen=True, kw_only=True):
    """PEM files. HAProxy wants both in one."""

    certificate: Path
    key: Path
    both: Path

    @classmethod
    def made(cls, directory: Path) -> "Certificate":
        """One for the loopback address that signs itself: ECDSA on P-256, as most devices meet."""
        made = cls(certificate=directory / "bench.crt", key=directory / "bench.key", both=directory / "bench.pem")
        command = [installed("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
        command += ["-nodes", "-days", "2", "-subj", "/CN=tidegate-bench", "-addext", f"subjectAltName=IP:{HOST}"]
        command += ["-keyout", str(made.key), "-out", str(made.certificate)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        made.both.write_bytes(made.certificate.read_bytes() + made.key.read_bytes())
        return made


def installed(program: str) -> str:
    """Debian keeps servers where not every user's shell looks."""
    found = shutil.which(program) or shutil.which(program, path="/usr/sbin:/usr/local/sbin")
    if found is None:
        raise UserError(f"The program {program} is not installed: the benchmark needs it, 'apt-get install {program}'.")
    return found
