"""Clients that connect again at once, without any backoff: ``python -m tidegate_bench.storm.clients``.

All of them in one process on one epoll. It says when it is ready, begins with the first line on its standard input, and
from then on says how many are connected: every 50 ms, and as soon as all are. It ends when its standard
input does.
"""

import argparse
import errno
import json
import select
import socket
import struct
import sys
import time
from collections import Counter, deque
from pathlib import Path
from typing import Any

from tidegate.bus.installation import load_installation
from tidegate.mqtt.client import encode_connect
from tidegate_bench.rig.processes import allow_open_files

SAY_EVERY_S = 0.05
# RST instead of FIN: ports of closed connections are free again at once, however many there were.
NO_LINGER = struct.pack("ii", 1, 0)
ACCEPTED = b"\x20\x02\x00\x00"


class StormClient:
    """One of them, on one attempt."""

    __slots__ = ("answer", "connect", "connected", "socket")

    def __init__(self, connect: bytes) -> None:
        self.connect = connect
        self.begin()

    def begin(self) -> None:
        self.socket = socket.socket()
        self.socket.setblocking(False)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
        self.answer = b""
        self.connected = False


class Storm:
    """The clients that are connected, and those that are trying."""

    def __init__(self, address: tuple[str, int], connects: list[bytes]) -> None:
        self.connected = 0
        # attempts; refused: by a CONNACK; unanswered: ended before any; lost: ended after one.
        self.counts: Counter[str] = Counter(attempts=0, refused=0, unanswered=0, lost=0)
        self._address = address
        self._by_number: dict[int, StormClient] = {}
        self._absent = deque(StormClient(connect) for connect in connects)
        self._poll = select.epoll()

    def turn(self) -> None:
        """Clients that are absent try again, and all sockets are looked at once."""
        for _ in range(len(self._absent)):
            self._try(self._absent.popleft())
        for number, events in self._poll.poll(0 if self._absent else SAY_EVERY_S):
            client = self._by_number[number]
            try:
                if events & select.EPOLLOUT:
                    client.socket.send(client.connect)
                    self._poll.modify(number, select.EPOLLIN)
                else:
                    self._receive(client)
            except OSError:
                self._again(client, "lost" if client.connected else "unanswered")

    def close(self) -> None:
        for client in (*self._by_number.values(), *self._absent):
            client.socket.close()
        self._poll.close()

    def _try(self, client: StormClient) -> None:
        self.counts["attempts"] += 1
        number = client.socket.fileno()
        self._by_number[number] = client
        self._poll.register(number, select.EPOLLOUT)
        if client.socket.connect_ex(self._address) not in (0, errno.EINPROGRESS):
            self._again(client, "unanswered")

    def _receive(self, client: StormClient) -> None:
        data = client.socket.recv(4096)
        if not data:
            self._again(client, "lost" if client.connected else "unanswered")
        elif not client.connected:
            client.answer += data
            if client.answer.startswith(ACCEPTED):
                client.connected = True
                self.connected += 1
            elif len(client.answer) >= len(ACCEPTED):
                self._again(client, "refused")

    def _again(self, client: StormClient, because: str) -> None:
        self.counts[because] += 1
        self.connected -= client.connected
        del self._by_number[client.socket.fileno()]
        client.socket.close()
        client.begin()
        self._absent.append(client)


def run(storm: Storm, clients: int) -> None:
    """Until nobody reads any more. The parent's end of the pipe is looked at as often as something is said."""
    parent = select.poll()
    parent.register(sys.stdin, select.POLLIN)
    said_s, said = 0.0, 0
    while True:
        storm.turn()
        now_s = time.monotonic()
        if storm.connected == clients != said or now_s - said_s >= SAY_EVERY_S:
            said_s, said = now_s, storm.connected
            _say({"at_s": now_s, "connected": storm.connected, **storm.counts})
            if parent.poll(0):
                return


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tidegate_bench.storm.clients")
    parser.add_argument("--state", type=Path, required=True, help="directory that says as whom to connect")
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--clients", type=int, required=True)
    parser.add_argument("--name", required=True, help="what the clients' names begin with")
    options = parser.parse_args()
    allow_open_files()
    installation = load_installation(options.state)
    user, password = installation.mqtt_user, installation.mqtt_password
    connects = [
        encode_connect(f"{options.name}-{number}", user=user, password=password, keep_alive_s=3_600)
        for number in range(options.clients)
    ]
    storm = Storm((options.host, options.port), connects)
    _say({"ready": options.clients})
    if sys.stdin.readline():
        _say({"began_s": time.monotonic()})
        run(storm, options.clients)


def _say(what: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
