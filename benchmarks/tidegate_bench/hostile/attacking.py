"""The process that attacks: ``python -m tidegate_bench.hostile.attacking`` with an ``AttackOrder`` on standard input.

A process of its own, and one that steps back for others: real attackers bring their own processors, so what it costs
to attack must not be measured as what it does to others.
"""

import asyncio
import contextlib
import itertools
import os
import socket
import sys
import time
from collections import Counter
from pathlib import Path

import msgspec

from tidegate.bus.installation import load_installation
from tidegate.bus.issued import Credentials
from tidegate.machine.ports import HOST
from tidegate_bench.hostile.attacks import Attack, attacks
from tidegate_bench.hostile.packets import ANY_NUMBER, PASSWORD
from tidegate_bench.hostile.words import last_words
from tidegate_bench.rig.credentials import credentials

SOCKETS_MAX = 250
ATTEMPTS_PER_S = 100.0
ANSWER_S_MAX = 5.0
NICENESS = 10
CANNOT_CONNECT = "cannot connect"
# What the kernel keeps for a client that does not read.
UNREAD_BYTES = 4_096
_READ_BYTES_MAX = 65_536


class AttackOrder(msgspec.Struct, frozen=True, kw_only=True):
    listeners: dict[str, tuple[str, int]]
    state: str  # directory that says as whom to connect
    names: tuple[str, ...]  # of the attacks


class AttackResult(msgspec.Struct, frozen=True, kw_only=True):
    """What became of all attempts of one attack."""

    name: str
    attempts: int
    clean: int
    seconds_max: float
    endings: dict[str, int]  # what happened, in words -> how often


async def perform(order: AttackOrder) -> list[AttackResult]:
    wanted = [attack for attack in attacks() if attack.name in order.names]
    as_whom = credentials(load_installation(Path(order.state)))
    turns, number = asyncio.Semaphore(SOCKETS_MAX), itertools.count()
    found: dict[str, list[tuple[bool, float, str]]] = {attack.name: [] for attack in wanted}

    async def attempt(attack: Attack) -> None:
        async with turns:
            one = as_somebody(attack, next(number), as_whom)
            closed, seconds, words = await attempted(one, order.listeners[attack.listener])
        found[attack.name].append((attack.is_clean(closed, seconds, words), seconds, ending(closed, words)))

    async with asyncio.TaskGroup() as attempts:
        for attack in _interleaved(wanted):
            attempts.create_task(attempt(attack))
            await asyncio.sleep(1 / ATTEMPTS_PER_S)
    return [_result(name, tries) for name, tries in found.items()]


def _interleaved(wanted: list[Attack]) -> list[Attack]:
    """One attempt of each, then the next of each."""
    rounds = range(max((attack.times for attack in wanted), default=0))
    return [attack for turn in rounds for attack in wanted if turn < attack.times]


def _result(name: str, tries: list[tuple[bool, float, str]]) -> AttackResult:
    return AttackResult(
        name=name,
        attempts=len(tries),
        clean=sum(clean for clean, _, _ in tries),
        seconds_max=round(max(seconds for _, seconds, _ in tries), 2),
        endings=dict(Counter(ending for _, _, ending in tries)),
    )


def ending(closed: bool, words: str) -> str:
    return f"{'closed' if closed else 'open'}, {words or 'no words'}"


def as_somebody(attack: Attack, number: int, as_whom: Credentials) -> Attack:
    """By a name of its own, with the password that belongs to it."""
    name = attack.user.replace(ANY_NUMBER, b"%06d" % (number % 1_000_000))
    password = as_whom(name.decode())[1].encode()
    assert len(password) == len(PASSWORD), "packets stay whole"

    def said(data: bytes) -> bytes:
        return data.replace(attack.user, name).replace(PASSWORD, password)

    return msgspec.structs.replace(attack, opening=said(attack.opening), sends=said(attack.sends))


async def attempted(attack: Attack, address: tuple[str, int], source: str = HOST) -> tuple[bool, float, str]:
    """Whether it was closed, how long after the last good byte, and with which words. It comes from ``source``."""
    loop = asyncio.get_running_loop()
    with socket.socket() as connection:
        connection.setblocking(False)
        if not attack.reads:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, UNREAD_BYTES)
        try:
            if source != HOST:
                connection.bind((source, 0))
            await loop.sock_connect(connection, address)
        except OSError:
            return False, 0.0, CANNOT_CONNECT
        before = b""
        if attack.opening:
            before = await _open(connection, attack.opening)
            if not before:
                return True, 0.0, "the opening was not answered"
        started_s = time.monotonic()
        data, closed = bytearray(before), asyncio.Event()
        reading = asyncio.create_task(_read(connection, data, closed)) if attack.reads else None
        sending = asyncio.create_task(_send(connection, attack))
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(attack.within_s + (0 if attack.ends != "closed" else 1.0)):
                    await closed.wait()
            seconds = time.monotonic() - started_s
        finally:
            for task in (reading, sending):
                if task is not None:
                    task.cancel()
                    await asyncio.wait((task,))
        return closed.is_set(), seconds, last_words(attack.listener, bytes(data), attack.version)


async def _open(connection: socket.socket, opening: bytes) -> bytes:
    """What answered the opening: a CONNACK, or the head of an HTTP answer."""
    loop, data = asyncio.get_running_loop(), b""
    try:
        async with asyncio.timeout(ANSWER_S_MAX):
            await loop.sock_sendall(connection, opening)
            while not (b"\r\n\r\n" in data or (data[:1] == b"\x20" and len(data) >= 2 + data[1])):
                chunk = await loop.sock_recv(connection, _READ_BYTES_MAX)
                if not chunk:
                    return b""
                data += chunk
    except (OSError, TimeoutError, IndexError):
        return b""
    return data


async def _read(connection: socket.socket, data: bytearray, closed: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    with contextlib.suppress(OSError):
        while chunk := await loop.sock_recv(connection, _READ_BYTES_MAX):
            data += chunk
    closed.set()


async def _send(connection: socket.socket, attack: Attack) -> None:
    loop, data = asyncio.get_running_loop(), attack.sends
    with contextlib.suppress(OSError):
        if attack.drip_s:
            for place in range(len(data)):
                await loop.sock_sendall(connection, data[place : place + 1])
                await asyncio.sleep(attack.drip_s)
        else:
            await loop.sock_sendall(connection, data)
        if attack.half_closes:
            connection.shutdown(socket.SHUT_WR)


def main() -> None:
    os.nice(NICENESS)
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=AttackOrder)
    sys.stdout.buffer.write(msgspec.json.encode(asyncio.run(perform(order))))


if __name__ == "__main__":
    main()
