"""How one process of a gateway asks another to let a client go that connects anew.

Each process has a mailbox, a pair of datagram sockets made by who starts the processes; everybody may write to it. A
mailbox outlives its process: what is said to one that dies is answered by nobody, or by its replacement, which does not
have the client and says so.
"""

import asyncio
import itertools
import secrets
import socket
import struct
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

import msgspec

_ASK, _ANSWER = 1, 2
# Kind, slot of the sender, number of the question, client, credentials, whether it has left.
_MESSAGE = struct.Struct("<BHQ16s16s?")
# A mailbox that is full is tried again soon.
_AGAIN_S = 0.005
_READ_AT_ONCE = 64

# The digests of a client and of its credentials; answers whether the client is not connected there (any more).
Asked = Callable[[bytes, bytes], Awaitable[bool]]


class Mailbox(NamedTuple):
    reading: socket.socket
    writing: socket.socket

    @classmethod
    def open(cls) -> "Mailbox":
        return cls(*socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))

    @classmethod
    def from_fds(cls, fds: "MailboxFds") -> "Mailbox":
        return cls(socket.socket(fileno=fds.reading), socket.socket(fileno=fds.writing))

    def close(self) -> None:
        self.reading.close()
        self.writing.close()


class MailboxFds(msgspec.Struct, frozen=True):
    reading: int
    writing: int


class Peers:
    """As the process in one slot sees them. ``asked`` is called when another asks for a client to leave."""

    def __init__(self, slot: int, mailboxes: Sequence[Mailbox]) -> None:
        self._slot = slot
        self._mailboxes = mailboxes
        for mailbox in mailboxes:
            mailbox.reading.setblocking(False)
            mailbox.writing.setblocking(False)
        self._numbers = itertools.count(secrets.randbits(63))  # an answer to who was here before is none to us
        self._waiting: dict[int, asyncio.Future[bool]] = {}
        self._answering: set[asyncio.Task[None]] = set()
        self._asked: Asked | None = None

    def start(self, asked: Asked) -> None:
        self._asked = asked
        asyncio.get_running_loop().add_reader(self._mailboxes[self._slot].reading.fileno(), self._receive)

    async def stop(self) -> None:
        asyncio.get_running_loop().remove_reader(self._mailboxes[self._slot].reading.fileno())
        for task in self._answering:
            task.cancel()
        await asyncio.gather(*self._answering, return_exceptions=True)

    async def ask_to_leave(self, slot: int, client: bytes, credentials: bytes, timeout_s: float) -> bool:
        """Whether the client is not connected to that process any more; False also where it does not answer in time."""
        number = next(self._numbers)
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            async with asyncio.timeout(timeout_s):
                await self._send(slot, _MESSAGE.pack(_ASK, self._slot, number, client, credentials, False))
                return await answer
        except TimeoutError:
            return False
        finally:
            del self._waiting[number]

    async def _send(self, slot: int, message: bytes) -> None:
        while True:
            try:
                self._mailboxes[slot].writing.send(message)
            except BlockingIOError:
                await asyncio.sleep(_AGAIN_S)
            else:
                return

    def _receive(self) -> None:
        for _ in range(_READ_AT_ONCE):
            try:
                message = self._mailboxes[self._slot].reading.recv(_MESSAGE.size)
            except BlockingIOError:
                return
            kind, slot, number, client, credentials, has_left = _MESSAGE.unpack(message)
            if kind == _ANSWER:
                answer = self._waiting.get(number)
                if answer is not None and not answer.done():
                    answer.set_result(has_left)
            else:
                task = asyncio.get_running_loop().create_task(self._answer(slot, number, client, credentials))
                self._answering.add(task)
                task.add_done_callback(self._answering.discard)

    async def _answer(self, slot: int, number: int, client: bytes, credentials: bytes) -> None:
        assert self._asked is not None
        has_left = await self._asked(client, credentials)
        await self._send(slot, _MESSAGE.pack(_ANSWER, self._slot, number, client, credentials, has_left))
