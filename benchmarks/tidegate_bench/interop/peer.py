"""One client as every behaviour uses it, whichever library it is: opened, told to do things, and listened to.

A peer never fails because something did not come: it waits its time and reports what came. What it reports is an
observation, and observations are compared.
"""

import asyncio
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec

WAIT_S = 8.0
_SHOWN_BYTES_MAX = 40

Answer = TypeVar("Answer")


class NotApplicableError(Exception):
    """This client cannot do that; the message says why."""


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Where a client connects, as whom, and in which version of MQTT (4 is 3.1.1)."""

    host: str
    port: int
    user: str
    password: str
    version: int


class Extras(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The MQTT 5 properties of one message that behaviours look at. Without any it is an MQTT 3.1.1 message."""

    user: tuple[tuple[str, str], ...] = ()
    content_type: str | None = None
    response_topic: str | None = None
    correlation: str | None = None
    expiry_s: int | None = None
    alias: int | None = None
    identifiers: tuple[int, ...] = ()


NO_EXTRAS = Extras()


class WillMessage(msgspec.Struct, frozen=True, kw_only=True):
    topic: str
    payload: bytes
    qos: int = 1
    retain: bool = False
    delay_s: int = 0


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How a client connects. ``session_s`` is how long its session outlives it: 3.1.1 only knows 0 and for ever."""

    client_id: str
    clean: bool = True
    session_s: int = 0
    keep_alive_s: int = 60
    will: WillMessage | None = None
    password: str | None = None  # instead of the right one


class Heard(msgspec.Struct, frozen=True, kw_only=True):
    """One message as a subscriber got it."""

    topic: str
    payload: bytes
    qos: int
    retain: bool
    duplicate: bool | None  # None: the client does not say
    extras: Extras = NO_EXTRAS

    def seen(self) -> dict[str, Any]:
        """As part of an observation: plain values, a long payload as its length and digest."""
        shown = {
            "topic": self.topic,
            "payload": shown_payload(self.payload),
            "qos": self.qos,
            "retain": self.retain,
            "duplicate": self.duplicate,
        }
        extras = msgspec.to_builtins(self.extras)
        return {**shown, **({"properties": extras} if extras else {})}


class ConnectAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What CONNACK said; what the client does not tell is None."""

    code: int | str
    session_present: bool | None = None
    granted: tuple[int, ...] = ()  # per filter that was given at opening
    announced: dict[str, Any] = {}  # MQTT 5: properties of CONNACK, as far as the client shows them


def shown_payload(payload: bytes) -> str:
    if len(payload) <= _SHOWN_BYTES_MAX:
        return payload.decode(errors="backslashreplace")
    return f"{len(payload)} bytes, {hashlib.blake2b(payload, digest_size=4).hexdigest()}"


class InteropPeer(ABC):
    """Belongs to one event loop. Topics are given and heard without ``prefix``, which keeps runs apart."""

    KIND = ""
    KEEP_ALIVE_S_MIN = 1

    def __init__(self, endpoint: Endpoint, options: Options, prefix: str) -> None:
        self.endpoint, self.options, self.prefix = endpoint, options, prefix
        self.heard: list[Heard] = []
        self.close_code: int | str | None = None  # what the broker gave as its reason, where the client tells
        self._changed = asyncio.Event()
        self._closed = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    # -- what a client can do

    @abstractmethod
    async def open(
        self, *filters: tuple[str, int], again: bool = False, identifier: int | None = None
    ) -> ConnectAnswer:
        """Connect and subscribe. ``again``: the session has these subscriptions, so a client that need not name them
        does not."""

    @abstractmethod
    async def publish(
        self, topic: str, *payloads: bytes, qos: int = 0, retain: bool = False, extras: Extras = NO_EXTRAS
    ) -> list[int | str | None]:
        """Publish and wait for the acknowledgements; their codes where the client tells them."""

    @abstractmethod
    async def close(self) -> None:
        """End normally: DISCONNECT, then close. Does nothing where the connection is gone."""

    @abstractmethod
    async def vanish(self) -> None:
        """Close the socket without a word."""

    async def subscribe(self, *filters: tuple[str, int]) -> tuple[int, ...]:  # noqa: ARG002
        raise NotApplicableError(f"{self.KIND} subscribes only when it starts")

    async def unsubscribe(self, *filters: str) -> tuple[int | str, ...]:  # noqa: ARG002
        raise NotApplicableError(f"{self.KIND} cannot unsubscribe while it listens")

    async def fall_silent(self) -> None:
        """Stay connected and send nothing any more, not even a ping."""
        raise NotApplicableError(f"{self.KIND} has no way to stop its pings")

    # -- what came

    def topic(self, name: str) -> str:
        """The name on the wire. What begins with ``$share`` keeps its beginning."""
        if name.startswith("$share/"):
            share, group, rest = name.split("/", 2)
            return f"{share}/{group}/{self.prefix}{rest}"
        return self.prefix + name

    def hear(self, message: Heard) -> None:
        self.heard.append(msgspec.structs.replace(message, topic=message.topic.removeprefix(self.prefix)))
        self._changed.set()

    def lost(self, code: int | str | None) -> None:
        if not self._closed.is_set():
            self.close_code = code
            self._closed.set()

    async def until(self, condition: Callable[[list[Heard]], bool], wait_s: float = WAIT_S) -> bool:
        """Whether what was heard comes to satisfy the condition in time."""
        try:
            async with asyncio.timeout(wait_s):
                while not condition(self.heard):
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return False
        return True

    async def hears(self, count: int) -> list[Heard]:
        """What was heard, once there are ``count`` messages or the time is over."""
        await self.until(lambda heard: len(heard) >= count)
        return self.heard

    async def hears_of(self, payload: bytes) -> list[Heard]:
        """What was heard, once this payload is among it or the time is over."""
        await self.until(lambda heard: any(message.payload == payload for message in heard))
        return self.heard

    async def is_closed(self, wait_s: float = WAIT_S) -> bool:
        try:
            async with asyncio.timeout(wait_s):
                await self._closed.wait()
        except TimeoutError:
            return False
        return True


async def in_time(result: Awaitable[Answer], otherwise: Answer, wait_s: float = WAIT_S) -> Answer:
    try:
        async with asyncio.timeout(wait_s):
            return await result
    except TimeoutError:
        return otherwise
