"""The method ``http``: somebody's own service is asked who a client is, and its answer remembered for a while.

::

    POST {"client_id": …, "user": …, "password": …, "address": …}
    200 {"name": …, "publishes": […], "subscribes": […], "expires_s": …}   all but the name may be left out
    401, 403: refused    404: not known, the next method is asked    anything else, or nothing in time: come again

A slow service delays those who need it, and of them no more than ``requests_max`` at a time; who comes beyond that is
told at once to come again. What was asked is asked to its end, whether or not the client still waits: an answer that
comes is remembered, and who asks the same meanwhile waits for the same answer.
"""

import asyncio
import secrets
import ssl
from collections.abc import Callable, Sequence
from functools import partial
from hashlib import blake2b

import httpx
import msgspec

from tidegate.gateway.identity.files import UNCHANGED, Reread, WatchedFiles
from tidegate.gateway.identity.methods import Answer, Plain
from tidegate.gateway.identity.posting import Posts, Reply
from tidegate.gateway.identity.remembering import Memory
from tidegate.gateway.identity.settings import HttpSettings
from tidegate.gateway.identity.verdicts import (
    SERVICE_AWAY,
    TOO_MANY_CHECKS,
    WRONG,
    Known,
    Later,
    Presented,
    Refused,
)
from tidegate.model.errors import UserError
from tidegate.model.identity import Patterns

GRACE_S = 0.05  # a request that is given up makes room for another before its client hears of it
_OK, _NOT_KNOWN = 200, 404
_REFUSED = (401, 403)

Remembered = Known | Refused | None


class Said(msgspec.Struct, frozen=True):
    """What the service answers of a client that it knows."""

    name: str
    publishes: tuple[str, ...] | None = None
    subscribes: tuple[str, ...] | None = None
    expires_s: float | None = None  # Unix time


class Service(Plain):
    """``clock`` gives Unix time."""

    def __init__(self, settings: HttpSettings, clock: Callable[[], float], *, strict: bool = True) -> None:
        self._settings, self._clock = settings, clock
        self._header = WatchedFiles([settings.header], read_header, strict=strict) if settings.header else None
        verify = _trusting(settings.ca) if settings.ca else httpx.create_ssl_context(trust_env=False)
        self._posts = Posts(settings.url, verify, settings.timeout_s)
        self._secret = secrets.token_bytes(16)
        # Two, so that whoever tries passwords pushes nobody out who was let in.
        self._known: Memory[Known] = Memory(settings.cached_max)
        self._others: Memory[Refused | None] = Memory(settings.cached_max)
        self._asking: dict[bytes, asyncio.Task[Remembered]] = {}

    def find(self, presented: Presented, now_s: float) -> Answer:
        question = _question(presented)
        if question is None:
            return WRONG
        digest = blake2b(question, key=self._secret, digest_size=16).digest()
        if self._known.has(digest, now_s):
            return self._known[digest]
        if self._others.has(digest, now_s):
            return self._others[digest]
        if digest not in self._asking and len(self._asking) >= self._settings.requests_max:
            return TOO_MANY_CHECKS
        return Later(partial(self._ask, question, digest))

    def look(self) -> Reread:
        return UNCHANGED if self._header is None else self._header.look()

    async def close(self) -> None:
        under_way = list(self._asking.values())
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
        await self._posts.close()

    async def _ask(self, question: bytes, digest: bytes) -> Remembered:
        """The client's end ends the waiting, not the request."""
        task = self._asking.get(digest)
        if task is None:
            task = asyncio.create_task(self._answer(question, digest))
            self._asking[digest] = task
            task.add_done_callback(lambda _: self._asking.pop(digest))
        done, _ = await asyncio.wait((task,), timeout=self._settings.timeout_s + GRACE_S)
        return task.result() if done and not task.cancelled() else SERVICE_AWAY

    async def _answer(self, question: bytes, digest: bytes) -> Remembered:
        headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
        own = {} if self._header is None else self._header.value
        if own is None:
            return SERVICE_AWAY  # the header could not be read yet
        headers |= own
        try:
            answer = _said(await self._posts.post(question, headers))
        except Exception:  # whatever a service does, or what stands in between: it has not answered
            return SERVICE_AWAY
        self._remember(digest, answer)
        return answer

    def _remember(self, digest: bytes, answer: Remembered) -> None:
        now_s = self._clock()
        if isinstance(answer, Known):
            until_s = now_s + self._settings.cache_s
            if answer.expires_s is not None:
                until_s = min(until_s, answer.expires_s)
            self._known.keep(digest, answer, now_s, until_s)
        else:
            self._others.keep(digest, answer, now_s, now_s + self._settings.refused_cache_s)


def _question(presented: Presented) -> bytes | None:
    """None where a password is no text: JSON could not carry it."""
    user = presented.user_name
    try:
        password = None if presented.password is None else presented.password.decode()
    except UnicodeDecodeError:
        return None
    if user is None:
        return None
    asked = {"client_id": presented.client_id, "user": user, "password": password, "address": presented.address}
    return msgspec.json.encode(asked)


def _said(reply: Reply) -> Remembered:
    if reply.status in _REFUSED:
        return WRONG
    if reply.status == _NOT_KNOWN:
        return None
    if reply.status != _OK:
        raise ValueError(f"status {reply.status}")
    return _known(reply.content)


def _known(content: bytes) -> Known:
    """Raises ``ValueError``, ``RecursionError`` or ``UserError`` where the service says what it should not."""
    said = msgspec.json.decode(content, type=Said)
    patterns = None
    if said.publishes is not None or said.subscribes is not None:
        patterns = Patterns(publishes=said.publishes or (), subscribes=said.subscribes or ())
    return Known(name=said.name, expires_s=said.expires_s, patterns=patterns)


def read_header(contents: Sequence[bytes]) -> dict[str, str]:
    """One line, ``Name: value``."""
    try:
        name, colon, value = contents[0].decode("ascii").strip().partition(":")
    except UnicodeDecodeError:
        colon = ""
    if not colon or not name.strip() or "\n" in name + value:
        raise UserError("[identity.http] header names a file that is not one line 'Name: value': correct it.")
    return {name.strip(): value.strip()}


def _trusting(ca: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca)
    except (ssl.SSLError, OSError) as error:
        why = error.strerror or str(error)
        raise UserError(f"[identity.http] ca {ca} cannot be used ({why}): give a PEM file with certificates.") from None
