"""The two directions of a connection once it flows: what the event loop calls for every chunk.

Each stands in the place of its side (``DeviceSide``, ``BrokerSide``), is compiled with the rest of the per-message
path, and does nothing but pass bytes through the session. Everything else that happens to a connection is its side's.
"""

from collections.abc import Callable
from typing import Any

from tidegate.gateway.connection.session import Session

Write = Callable[[bytes], None]
Clock = Callable[[], float]


def _nowhere(_: bytes) -> None:
    """Where a side that is gone is written to."""


class DeviceFlow:
    """From the device to the broker. ``side`` is told of everything that is not just bytes."""

    def __init__(self, side: Any, session: Session, write: Write, clock: Clock) -> None:
        self._side = side
        self._session = session
        self._write = write
        self._clock = clock
        self._tally = session.passing.counters.tally

    def data_received(self, data: bytes) -> None:
        session = self._session
        now_s = self._clock() if session.passing.needs_time else self._tally.now_s
        forward = session.from_device(data, now_s)
        if forward:
            try:
                self._write(forward)
            except RuntimeError:
                return  # the broker's side is closed, and this one about to be
        if session.attention:
            self._side.attend(now_s)
        if session.is_dear and self._side is not None:
            session.is_dear = False
            self._side.take_turns()

    def connection_lost(self, error: Exception | None) -> None:
        side, self._side, self._write = self._side, None, _nowhere  # nothing that is over keeps the other alive
        side.connection_lost(error)

    def eof_received(self) -> bool:
        keeps_open: bool = self._side.eof_received()
        return keeps_open

    def pause_writing(self) -> None:
        self._side.pause_writing()

    def resume_writing(self) -> None:
        self._side.resume_writing()


class BrokerFlow:
    """From the broker to the device."""

    def __init__(self, side: Any, session: Session, write: Write) -> None:
        self._side = side
        self._session = session
        self._write = write

    def data_received(self, data: bytes) -> None:
        session = self._session
        forward = session.from_broker(data)
        if forward:
            try:
                self._write(forward)
            except RuntimeError:
                return  # the device's side is closed, and this one about to be
        if session.problem:
            self._side.end(session)

    def connection_lost(self, error: Exception | None) -> None:
        side, self._side, self._write = self._side, None, _nowhere  # nothing that is over keeps the other alive
        side.connection_lost(error)

    def eof_received(self) -> None:
        self._side.eof_received()

    def pause_writing(self) -> None:
        self._side.pause_writing()

    def resume_writing(self) -> None:
        self._side.resume_writing()
