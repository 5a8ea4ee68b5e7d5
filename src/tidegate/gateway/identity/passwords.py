"""The method ``file``: names and hashed passwords, a line each, as Mosquitto's password file has them.

Hashes take long on purpose: they are checked in a few threads beside the event loop. A password that was right is
remembered by a keyed digest, for as long as its line stays the same.
"""

import asyncio
import contextlib
import os
import secrets
import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from hashlib import blake2b

from tidegate.gateway.identity.files import Reread, WatchedFiles
from tidegate.gateway.identity.hashing import is_hash, parsed
from tidegate.gateway.identity.methods import Answer
from tidegate.gateway.identity.verdicts import TOO_MANY_CHECKS, WRONG, Known, Later, Presented, Refused
from tidegate.model.errors import UserError

# One thread, behind everything else: whoever tries passwords keeps nobody else waiting.
THREADS, NICE = 1, 10
CHECKS_MAX = 256  # that wait at a time
REMEMBERED_MAX = 10_000


class PasswordFile:
    def __init__(self, path: str, *, strict: bool = True) -> None:
        self._users = WatchedFiles([path], partial(read_users, path), strict=strict)
        self._secret = secrets.token_bytes(16)
        self._right: OrderedDict[bytes, None] = OrderedDict()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="passwords", initializer=_stand_back)
        self._waiting = 0

    @property
    def is_off(self) -> bool:
        return self._users.value is None

    def find(self, presented: Presented, _now_s: float) -> Answer:
        name, password = presented.user_name, presented.password
        line = self._users.value.get(name) if name and self._users.value else None
        if name is None or line is None:
            return None
        if password is None:
            return WRONG
        digest = self._digest(name, line, password)
        if digest in self._right:
            self._right.move_to_end(digest)
            return Known(name=name)
        if self._waiting >= CHECKS_MAX:
            return TOO_MANY_CHECKS
        return Later(partial(self._ask, name, line, password, digest))

    async def _ask(self, name: str, line: str, password: bytes, digest: bytes) -> Known | Refused:
        self._waiting += 1
        try:
            is_right = await asyncio.get_running_loop().run_in_executor(self._threads, _fits, line, password)
        finally:
            self._waiting -= 1
        if not is_right:
            return WRONG
        self._right[digest] = None
        if len(self._right) > REMEMBERED_MAX:
            self._right.popitem(last=False)
        return Known(name=name)

    def _digest(self, name: str, line: str, password: bytes) -> bytes:
        head = f"{len(name)} {name} {line} ".encode()
        return blake2b(head + password, key=self._secret, digest_size=16).digest()

    def still_knows(self, name: str) -> bool:
        return self._users.value is None or name in self._users.value

    def look(self) -> Reread:
        return self._users.look()

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def _stand_back() -> None:
    """Of this thread alone, where the system can tell threads apart."""
    with contextlib.suppress(OSError, AttributeError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)


def read_users(path: str, contents: Sequence[bytes]) -> dict[str, str]:
    """Hashes by name."""
    (content,) = contents
    try:
        text = content.decode()
    except UnicodeDecodeError:
        raise UserError(f"{path} is no text in UTF-8: save it as that.") from None
    found: dict[str, str] = {}
    for number, written in enumerate(text.split("\n"), 1):
        line = written.strip(" \t\r")
        if not line or line.startswith("#"):
            continue
        name, _, hashed = line.partition(":")
        problem = _problem(name, hashed, found)
        if problem:
            raise UserError(f"{path}, line {number}: {problem}.")
        found[name] = hashed
    return found


def _problem(name: str, hashed: str, before: dict[str, str]) -> str:
    """Without the line itself: it may be a password."""
    if not name or not hashed:
        return "this is not name:hash: make the line with 'tidegate device hash'"
    if name in before:
        return f"{name!r:.80} stands there for the second time: leave one"
    if not is_hash(hashed):
        return "its hash is neither $7$ nor $6$ of Mosquitto's: make the line with 'tidegate device hash'"
    return ""


def _fits(line: str, password: bytes) -> bool:
    return parsed(line).fits(password)
