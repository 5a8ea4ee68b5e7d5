"""The method ``http``: somebody's own service is asked who a client is, and its answer remembered for a while.

::

    POST {"client_id": …, "user": …, "password": …, "address": …}
    200 {"name": …, "publishes": […], "subscribes": […], "expires_s": …}   all but the name may be left out
    401, 403: refused    404: not known, the next method is asked    anything else, or nothing in time: come again

A slow service delays those who need it, and of them no more than ``requests_max`` at a time; who comes beyond that is
told at once to come again.
"""

import asyncio
import secrets
import ssl
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from hashlib import blake2b

import httpx
import msgspec

from tidegate.gateway.identity.files import UNCHANGED, Reread, WatchedFiles
from tidegate.gateway.identity.methods import Answer, Plain
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

ANSWER_BYTES_MAX = 65_536
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
        self._verify = _trusting(settings.ca) if settings.ca else True
        self._client: httpx.AsyncClient | None = None
        self._secret = secrets.token_bytes(16)
        self._remembered: OrderedDict[bytes, tuple[float, Remembered]] = OrderedDict()
        self._asking = 0

    def find(self, presented: Presented, now_s: float) -> Answer:
        question = _question(presented)
        if question is None:
            return WRONG
        digest = blake2b(question, key=self._secret, digest_size=16).digest()
        until_s, answer = self._remembered.get(digest, (0.0, None))
        if now_s < until_s:
            return answer
        if self._asking >= self._settings.requests_max:
            return TOO_MANY_CHECKS
        return Later(partial(self._ask, question, digest))

    def look(self) -> Reread:
        return UNCHANGED if self._header is None else self._header.look()

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def _ask(self, question: bytes, digest: bytes) -> Remembered:
        self._asking += 1
        try:
            async with asyncio.timeout(self._settings.timeout_s):
                answer = await self._answer(question)
        except (httpx.HTTPError, httpx.InvalidURL, ssl.SSLError, OSError, TimeoutError, ValueError, UserError):
            return SERVICE_AWAY
        finally:
            self._asking -= 1
        self._remember(digest, answer)
        return answer

    async def _answer(self, question: bytes) -> Remembered:
        own = {} if self._header is None else self._header.value
        if own is None:
            raise ValueError("the header could not be read yet")
        headers = {"Content-Type": "application/json", **own}
        async with self._opened().stream("POST", self._settings.url, content=question, headers=headers) as response:
            if response.status_code in _REFUSED:
                return WRONG
            if response.status_code == _NOT_KNOWN:
                return None
            if response.status_code != _OK:
                raise ValueError(f"status {response.status_code}")
            content = b""
            async for part in response.aiter_bytes():
                content += part
                if len(content) > ANSWER_BYTES_MAX:
                    raise ValueError("too long an answer")
        return _known(content)

    def _opened(self) -> httpx.AsyncClient:
        if self._client is None:
            most = self._settings.requests_max
            limits = httpx.Limits(max_connections=most, max_keepalive_connections=most)
            # The deadline is one for all of it, and the environment's proxies are none of the gateway's.
            self._client = httpx.AsyncClient(verify=self._verify, limits=limits, timeout=None, trust_env=False)  # noqa: S113
        return self._client

    def _remember(self, digest: bytes, answer: Remembered) -> None:
        now_s = self._clock()
        until_s = now_s + (self._settings.cache_s if isinstance(answer, Known) else self._settings.refused_cache_s)
        if isinstance(answer, Known) and answer.expires_s is not None:
            until_s = min(until_s, answer.expires_s)
        if until_s > now_s:
            self._remembered[digest] = (until_s, answer)
            self._remembered.move_to_end(digest)
        if len(self._remembered) > self._settings.cached_max:
            self._remembered.popitem(last=False)


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


def _known(content: bytes) -> Known:
    """``msgspec.DecodeError``, a ``ValueError``, or ``UserError`` where the service says what it should not."""
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
