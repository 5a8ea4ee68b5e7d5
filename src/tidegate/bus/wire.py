"""The NATS wire protocol over one blocking socket: requests, publishes and a stream of raw frames.

Spark's planner and workers are synchronous processes that need either one answer or a hundred thousand
messages; a client without threads or event loop serves both and costs microseconds, not tens of them. One
``Wire`` belongs to one thread. Anything unexpected closes the connection; the next call opens a new one, to
the next address.
"""

import itertools
import json
import re
import secrets
import socket
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from tidegate.model.errors import BrokerUnavailableError

# A message (subject, subscription, reply, length of headers, length of all), or a control line.
FRAME = re.compile(
    rb"(?:H?MSG (\S+) (\d+)(?: (?!\d+ ?\d*\r\n)(\S+))?(?: (\d+))? (\d+)"
    rb"|(PING|PONG|\+OK|INFO [^\r\n]*|-ERR [^\r\n]*))\r\n"
)
STATUS = re.compile(rb"NATS/1\.0(?: (\d\d\d))?")
CHUNK_BYTES = 1 << 20
# Nobody answers the server's pings while nothing is asked, and it gives a silent client up after some minutes.
IDLE_S_MAX = 60.0


class Frame(NamedTuple):
    """One delivered message, headers still raw (empty where there are none)."""

    subject: bytes
    subscription: int
    reply: bytes | None
    headers: bytes
    payload: bytes

    @property
    def status(self) -> int | None:
        """The status a server puts into otherwise empty messages: 503 nobody listens, 404, 408, 100, 204."""
        found = STATUS.match(self.headers)
        return int(found.group(1)) if found and found.group(1) else None

    def fields(self) -> dict[str, str]:
        """The headers by name; a status and its words as ``Status`` and ``Description``, as other clients have them."""
        first, *lines = self.headers.decode(errors="replace").split("\r\n")
        pairs = (line.partition(":") for line in lines if line)
        found = {name: value.strip() for name, _, value in pairs}
        status, _, words = first.removeprefix("NATS/1.0").strip().partition(" ")
        if status:
            found |= {"Status": status, "Description": words}
        return found


class Wire:
    """One connection. Not for sharing between threads."""

    def __init__(self, urls: Sequence[str], *, timeout_s: float = 5.0, name: str = "tidegate") -> None:
        self.urls = tuple(urls)
        self.identity = secrets.token_hex(8)
        self._next_url = itertools.cycle(self.urls)
        self._timeout_s = timeout_s
        self._name = name
        self._socket: socket.socket | None = None
        self._used_at = 0.0
        self._buffer = b""
        self._inbox = f"_INBOX.{self.identity}"
        self._serial = itertools.count(2)

    def __enter__(self) -> "Wire":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        self._buffer = b""

    # -- connecting

    def connection(self) -> socket.socket:
        """The open socket, opened now if need be at the first address that answers."""
        if self._socket is not None and time.monotonic() - self._used_at > IDLE_S_MAX:
            self.close()
        self._used_at = time.monotonic()
        if self._socket is not None:
            return self._socket
        failures = []
        for url in itertools.islice(self._next_url, len(self.urls)):
            try:
                self._socket = self._open(url)
            except (OSError, BrokerUnavailableError) as error:
                parts = urlsplit(url)
                failures.append(f"{parts.hostname}:{parts.port} ({error})")
                self.close()
            else:
                return self._socket
        raise BrokerUnavailableError(f"No broker answers at {', '.join(failures)}: check that it runs.")

    def _open(self, url: str) -> socket.socket:
        parts = urlsplit(url)
        opened = socket.create_connection((parts.hostname, parts.port), timeout=self._timeout_s)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        hello = {
            "verbose": False,
            "pedantic": False,
            "headers": True,
            "no_responders": True,
            "protocol": 1,
            "name": self._name,
            "lang": "python",
            "version": "1",
            "user": unquote(parts.username or ""),
            "pass": unquote(parts.password or ""),
        }
        self._buffer = b""
        opened.sendall(b"CONNECT %s\r\nSUB %s.* 1\r\nPING\r\n" % (json.dumps(hello).encode(), self._inbox.encode()))
        self._socket = opened
        deadline = time.monotonic() + self._timeout_s
        while b"PONG\r\n" not in self._buffer:
            if b"-ERR" in self._buffer:
                raise BrokerUnavailableError(self._buffer.split(b"-ERR", 1)[1].split(b"\r\n")[0].decode().strip())
            self._fill(deadline)
        self._buffer = self._buffer.split(b"PONG\r\n", 1)[1]
        return opened

    # -- sending

    def send(self, data: bytes) -> None:
        try:
            self.connection().sendall(data)
        except OSError as error:
            self.close()
            raise BrokerUnavailableError(f"The connection to the broker broke while sending ({error}).") from error

    def publish(
        self, subject: str, payload: bytes = b"", *, reply: str = "", headers: Mapping[str, str] | None = None
    ) -> None:
        self.send(encode_publish(subject, payload, reply=reply, headers=headers))

    # -- receiving

    def _fill(self, deadline: float) -> None:
        """Append what the socket has to the buffer, waiting until the deadline at most."""
        if self._socket is None:
            raise BrokerUnavailableError("The connection to the broker is closed.")
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        self._socket.settimeout(left_s)
        try:
            chunk = self._socket.recv(CHUNK_BYTES)
        except TimeoutError:
            raise
        except OSError as error:
            self.close()
            raise BrokerUnavailableError(f"The connection to the broker broke ({error}).") from error
        if not chunk:
            self.close()
            raise BrokerUnavailableError("The broker closed the connection.")
        self._buffer += chunk

    def take(self, deadline: float) -> bytes:
        """Everything that has arrived, after waiting for something new. Hand back an incomplete tail with ``keep``."""
        self.connection()
        self._fill(deadline)
        data, self._buffer = self._buffer, b""
        return data

    def keep(self, rest: bytes) -> None:
        self._buffer = rest + self._buffer

    def frames(self, deadline: float) -> Iterator[Frame]:
        """Messages one by one. Raises TimeoutError at the deadline."""
        while True:
            frame = self._next_frame(deadline)
            if frame is not None:
                yield frame

    def _next_frame(self, deadline: float) -> Frame | None:
        self.connection()
        while (found := FRAME.match(self._buffer)) is None:
            if b"\r\n" in self._buffer:
                line = self._buffer.split(b"\r\n", 1)[0]
                self.close()
                raise BrokerUnavailableError(f"The broker sent something that is not NATS: {line[:80]!r}.")
            self._fill(deadline)
        control = found.group(6)
        if control is not None:
            self._buffer = self._buffer[found.end() :]
            self.answer(control)
            return None
        end = found.end() + int(found.group(5))
        while len(self._buffer) < end + 2:
            self._fill(deadline)
        headers_end = found.end() + int(found.group(4) or 0)
        frame = Frame(
            found.group(1),
            int(found.group(2)),
            found.group(3),
            self._buffer[found.end() : headers_end],
            self._buffer[headers_end:end],
        )
        self._buffer = self._buffer[end + 2 :]
        return frame

    def answer(self, control: bytes) -> None:
        """React to a line that is not a message."""
        if control == b"PING":
            self.send(b"PONG\r\n")
        elif control.startswith(b"-ERR"):
            self.close()
            raise BrokerUnavailableError(f"The broker refused: {control[5:].decode(errors='replace')}.")

    # -- request and reply

    def inbox(self) -> str:
        return f"{self._inbox}.{next(self._serial)}"

    def request(
        self,
        subject: str,
        payload: bytes = b"",
        *,
        headers: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> Frame:
        return self.requests([(subject, payload)], headers=headers, timeout_s=timeout_s)[0]

    def requests(
        self,
        asked: Iterable[tuple[str, bytes]],
        *,
        headers: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
    ) -> list[Frame]:
        """All requests in one write, their replies in the same order."""
        waiting: dict[bytes, int] = {}
        data = []
        for index, (subject, payload) in enumerate(asked):
            inbox = self.inbox()
            waiting[inbox.encode()] = index
            data.append(encode_publish(subject, payload, reply=inbox, headers=headers))
        if not data:
            return []
        replies: dict[int, Frame] = {}
        self.send(b"".join(data))
        deadline = time.monotonic() + (timeout_s or self._timeout_s)
        try:
            for frame in self.frames(deadline):
                index = waiting.pop(frame.subject, -1)
                if index >= 0:
                    replies[index] = frame
                if not waiting:
                    break
        except TimeoutError:
            self.close()
            raise BrokerUnavailableError(
                f"The broker did not answer {len(waiting)} of {len(data)} requests in time."
            ) from None
        return [replies[index] for index in range(len(data))]


def encode_publish(
    subject: str, payload: bytes = b"", *, reply: str = "", headers: Mapping[str, str] | None = None
) -> bytes:
    target = f"{subject} {reply}" if reply else subject
    if not headers:
        return b"PUB %s %d\r\n%s\r\n" % (target.encode(), len(payload), payload)
    lines = "".join(f"{key}: {value}\r\n" for key, value in headers.items())
    head = f"NATS/1.0\r\n{lines}\r\n".encode()
    return b"HPUB %s %d %d\r\n%s%s\r\n" % (target.encode(), len(head), len(head) + len(payload), head, payload)
