"""Clients that connect again at once, without any backoff: ``python -m tidegate_bench.storm.clients``.

All of them in one process on one epoll. It says when it is ready, begins with the first line on its standard input, and
from then on says how many are connected: every 50 ms, and as soon as all are. With the next line, or when its standard
input ends, it says at which moment each of them was accepted, and ends.
"""

import argparse
import errno
import json
import select
import socket
import ssl
import struct
import sys
import time
from collections import Counter, deque
from pathlib import Path
from typing import Any

from tidegate.bus.installation import load_installation
from tidegate.bus.issued import Credentials
from tidegate.mqtt.client import encode_connect
from tidegate_bench.rig.clients import tls_context
from tidegate_bench.rig.credentials import credentials
from tidegate_bench.rig.processes import allow_open_files

SAY_EVERY_S = 0.05
# RST instead of FIN: ports of closed connections are free again at once, however many there were.
NO_LINGER = struct.pack("ii", 1, 0)
ACCEPTED = b"\x20\x02\x00\x00"


class StormClient:
    """One of them, on one attempt."""

    __slots__ = ("answer", "connect", "connected", "greeted", "number", "socket")

    def __init__(self, connect: bytes) -> None:
        self.connect = connect
        self.begin()

    def begin(self) -> None:
        self.socket = socket.socket()
        self.number = self.socket.fileno()  # noted: a TLS handshake that fails may take the socket with it
        self.socket.setblocking(False)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGER)
        self.answer = b""
        self.connected = False
        self.greeted = False  # CONNECT is sent


class Storm:
    """The clients that are connected, and those that are trying."""

    def __init__(self, address: tuple[str, int], connects: list[bytes], tls: ssl.SSLContext | None = None) -> None:
        self.connected = 0
        self.accepted_s: list[float] = []
        # attempts; refused: by a CONNACK; unanswered: ended before any; lost: ended after one.
        self.counts: Counter[str] = Counter(attempts=0, refused=0, unanswered=0, lost=0)
        self._address, self._tls = address, tls
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
                if client.greeted:
                    self._receive(client)
                else:
                    self._greet(client, events)
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                pass
            except OSError:
                self._again(client, "lost" if client.connected else "unanswered")

    def close(self) -> None:
        for client in (*self._by_number.values(), *self._absent):
            client.socket.close()
        self._poll.close()

    def _try(self, client: StormClient) -> None:
        self.counts["attempts"] += 1
        self._by_number[client.number] = client
        self._poll.register(client.number, select.EPOLLOUT)
        if client.socket.connect_ex(self._address) not in (0, errno.EINPROGRESS):
            self._again(client, "unanswered")

    def _greet(self, client: StormClient, events: int) -> None:
        """TCP is there, or failed. With TLS a handshake comes first, in as many steps as it takes; after its first
        step all that a client waits for is to read."""
        if events & select.EPOLLOUT:
            self._poll.modify(client.number, select.EPOLLIN)
        if self._tls is not None:
            if not isinstance(client.socket, ssl.SSLSocket):
                client.socket = self._tls.wrap_socket(
                    client.socket, server_hostname=self._address[0], do_handshake_on_connect=False
                )
            client.socket.do_handshake()
        client.socket.send(client.connect)
        client.greeted = True

    def _receive(self, client: StormClient) -> None:
        data = client.socket.recv(4096)
        if not data:
            self._again(client, "lost" if client.connected else "unanswered")
        elif not client.connected:
            client.answer += data
            if client.answer.startswith(ACCEPTED):
                client.connected = True
                self.connected += 1
                self.accepted_s.append(time.monotonic())
            elif len(client.answer) >= len(ACCEPTED):
                self._again(client, "refused")

    def _again(self, client: StormClient, because: str) -> None:
        self.counts[because] += 1
        self.connected -= client.connected
        del self._by_number[client.number]
        client.socket.close()
        client.begin()
        self._absent.append(client)


def run(storm: Storm, clients: int) -> None:
    """Until it was enough. The parent's end of the pipe is looked at as often as something is said."""
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
                _say({"accepted_s": [round(moment_s, 4) for moment_s in storm.accepted_s]})
                return


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tidegate_bench.storm.clients")
    parser.add_argument("--state", type=Path, required=True, help="directory that says as whom to connect")
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--clients", type=int, required=True)
    parser.add_argument("--name", required=True, help="what the clients' names begin with")
    parser.add_argument("--authority", help="certificate (PEM) to believe; without it there is no TLS")
    options = parser.parse_args()
    allow_open_files()
    as_whom = credentials(load_installation(options.state))
    connects = [_encoded_connect(f"{options.name}-{number}", as_whom) for number in range(options.clients)]
    tls = tls_context(options.authority) if options.authority else None
    storm = Storm((options.host, options.port), connects, tls)
    _say({"ready": options.clients})
    if sys.stdin.readline():
        _say({"began_s": time.monotonic()})
        run(storm, options.clients)


def _encoded_connect(name: str, as_whom: Credentials) -> bytes:
    user, password = as_whom(name)
    return encode_connect(name, user=user, password=password, keep_alive_s=3_600)


def _say(what: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
