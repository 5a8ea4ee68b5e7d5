"""A broker as a real process, and a gateway of its own in front of it."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from tidegate.brokers.nats.embedded import EmbeddedBrokers, free_port
from tidegate.brokers.settings import BrokerSettings
from tidegate.model.errors import TidegateError, UserError
from tidegate.model.installation import Installation

HOST = "127.0.0.1"
READY_S_MAX = 30.0
STOP_S_MAX = 10.0
_USER, _PASSWORD = "device", "interop"
_MOSQUITTO = """\
listener {port} {host}
allow_anonymous false
password_file {passwords}
persistence false
"""


@contextlib.contextmanager
def nats(state: Path) -> Iterator[Installation]:
    """The embedded broker and its control bus."""
    with EmbeddedBrokers(state, BrokerSettings(nodes=1, slices=1)) as brokers:
        assert brokers.installation is not None
        yield brokers.installation


@contextlib.contextmanager
def mosquitto(state: Path) -> Iterator[Installation]:
    """Mosquitto as an installation. No control bus: a gateway then goes by the installation's own brokers."""
    state.mkdir(mode=0o700)
    port, passwords = free_port(set()), state / "passwords"
    subprocess.run(
        [program("mosquitto_passwd", "mosquitto"), "-b", "-c", passwords, _USER, _PASSWORD],
        check=True,
        capture_output=True,
    )
    passwords.chmod(0o644)  # started by root, mosquitto gives its rights up before it reads
    state.chmod(0o711)
    config = state / "mosquitto.conf"
    config.write_text(_MOSQUITTO.format(port=port, host=HOST, passwords=passwords))
    with running([program("mosquitto", "mosquitto"), "-c", str(config)], state / "mosquitto.log", (HOST, port)):
        installation = Installation(
            control_urls=(f"nats://{HOST}:{free_port({port})}",),
            data_urls=(),
            mqtt_addresses=((HOST, port),),
            monitor_urls=(),
            mqtt_user=_USER,
            mqtt_password=_PASSWORD,
            slices=1,
            tables=str(state / "tables"),
        )
        installation.save(state)
        yield installation


class RunningGateway(msgspec.Struct, frozen=True, kw_only=True):
    address: tuple[str, int]
    pid: int  # its first process; the others are its children


@contextlib.contextmanager
def gateway(state: Path, name: str, settings: Mapping[str, Any] | None = None) -> Iterator[RunningGateway]:
    """``tidegate gateway`` before the installation in ``state``, with these settings besides name and ports."""
    port = free_port(set())
    own = {"name": name, "port": port, "http_port": free_port({port}), **(settings or {})}
    config = state / f"{name}.toml"
    config.write_text("".join(["[gateway]\n", *(f"{key} = {toml(value)}\n" for key, value in own.items())]))
    command = [sys.executable, "-m", "tidegate.cli.main", "gateway", "--state", str(state), "--config", str(config)]
    log = state / f"{name}.log"
    with running(command, log, (HOST, port)) as process:
        # It listens before its processes serve: who connects now would wait for them.
        _await_words(process, log, " is ready at ")
        yield RunningGateway(address=(HOST, port), pid=process.pid)


@contextlib.contextmanager
def running(command: list[str], log: Path, address: tuple[str, int]) -> Iterator[subprocess.Popen[bytes]]:
    """A process that serves at the address, until the block is left."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True, env=os.environ
        )
    try:
        _await(process, log, address)
        yield process
    finally:
        _stop(process)


def toml(value: Any) -> str:
    """A setting as TOML, in one line. Text, numbers, truth and lists are written as in JSON."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {toml(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(toml(part) for part in value) + "]"
    return json.dumps(value)


def _await(process: subprocess.Popen[bytes], log: Path, address: tuple[str, int]) -> None:
    def answers() -> bool:
        with contextlib.suppress(OSError), socket.create_connection(address, timeout=0.5):
            return True
        return False

    _until(answers, process, log)


def _await_words(process: subprocess.Popen[bytes], log: Path, words: str) -> None:
    _until(lambda: words in log.read_text(errors="replace"), process, log)


def _until(serves: Callable[[], bool], process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + READY_S_MAX
    while not serves():
        if process.poll() is not None or time.monotonic() > deadline:
            words = log.read_text(errors="replace").strip().splitlines()[-1:]
            raise TidegateError(f"{log.stem} does not serve: {' '.join(words) or 'it said nothing.'}")
        time.sleep(0.05)


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def program(name: str, package: str) -> str:
    """Where a program is. Servers are not always on a user's own path."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin:/usr/local/sbin")
    if found is None:
        raise UserError(f"The program {name} is not installed: install it with 'apt-get install {package}'.")
    return found
