"""``tidegate gateway`` as a command: two processes, with the identity that it has by default."""

import contextlib
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

from support.bus import ControlBus
from support.clients import CONNACK, received
from support.credentials import connect_packet, settled
from support.processes import GATEWAY
from support.waiting import until
from tidegate.bus.installation import save_installation
from tidegate.model.credentials import Key
from tidegate.model.installation import Installation
from tidegate.model.observations import GatewayState


class Started:
    """``tidegate gateway`` with two processes, and what it says. ``settings`` are those of its section; ``more`` stands
    behind it."""

    def __init__(
        self, here: Installation, state: Path, name: str, key: Key, *, more: str = "", **settings: float
    ) -> None:
        self.name, self.here, self.state_directory, self.key = name, here, state, key
        self.said: list[str] = []
        config = state / "settings.toml"
        config.write_text("\n".join(["[gateway]", *(f"{key} = {value}" for key, value in settings.items()), more, ""]))
        options = ["--name", name, "--state", str(state), "--config", str(config), "--processes", "2"]
        self.process = subprocess.Popen([*GATEWAY, *options], stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        self._stderr = self.process.stderr
        self._ready = threading.Event()
        self._hearing = threading.Thread(target=self._hear, daemon=True)
        self._hearing.start()

    def _hear(self) -> None:
        for line in self._stderr:
            self.said.append(line)
            if line.startswith(f"Gateway {self.name} is ready at 127.0.0.1:"):
                self.port = int(line.split(" ")[5].split(":")[1])
                self._ready.set()

    def wait_ready(self) -> None:
        assert self._ready.wait(20), self.said

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self._hearing.join(10)
        self._stderr.close()

    @property
    def address(self) -> tuple[str, int]:
        return "127.0.0.1", self.port

    @property
    def state(self) -> GatewayState:
        """As it told it last."""
        with ControlBus(self.here) as bus:
            return bus.gateway(self.name)

    @property
    def pids(self) -> set[int]:
        return {process.pid for process in self.state.processes}

    def connect(self, name: str) -> socket.socket:
        """A device that was let in."""
        connection = socket.create_connection(self.address, 10)
        connection.sendall(connect_packet(self.key, name))
        assert received(connection, 4) == CONNACK
        return connection


@contextlib.contextmanager
def started(here: Installation, state: Path, name: str, *, more: str = "", **settings: float) -> Iterator[Started]:
    save_installation(here, state)
    gateway = Started(here, state, name, settled(here, state), more=more, **settings)
    try:
        gateway.wait_ready()
        until(lambda: len(gateway.state.processes) == 2)
        yield gateway
    finally:
        gateway.close()
