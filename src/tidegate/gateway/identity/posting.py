"""Requests to somebody's own service: one deadline for all of a request, one bound for its answer.

What is cancelled inside httpx may keep its place in the pool of connections for ever, or its socket if that was still
being connected (seen with httpcore 1.0.9). So no two requests share a pool: each takes a client with one connection
from those that lie idle, and gives it back only after a good end; anything else ends the client with the request. And
while it connects, only httpx's own deadline counts, once for TCP and once for TLS: that one leaves nothing behind.
"""

import asyncio
import ssl
from collections.abc import Mapping
from typing import Any

import httpx
import msgspec

ANSWER_BYTES_MAX = 65_536
_OK = 200
_CONNECTED = "http11.send_request_headers.started"
_ONE = httpx.Limits(max_connections=1, max_keepalive_connections=1)


class Reply(msgspec.Struct, frozen=True):
    """``content`` is that of a 200; nobody reads what else is said."""

    status: int
    content: bytes = b""


class Posts:
    """How many there are at a time is the caller's business, and as many connections are kept at most."""

    def __init__(self, url: str, verify: ssl.SSLContext, timeout_s: float) -> None:
        self._url, self._verify, self._timeout_s = url, verify, timeout_s
        self._idle: list[httpx.AsyncClient] = []

    async def post(self, content: bytes, headers: Mapping[str, str]) -> Reply:
        """``ValueError`` where the answer is none; ``TimeoutError``, and what httpx raises, where there is none."""
        ends_s = asyncio.get_running_loop().time() + self._timeout_s
        client = self._idle.pop() if self._idle else self._made()
        try:
            async with asyncio.timeout(None) as deadline:

                async def trace(event: str, _info: Any) -> None:
                    if event == _CONNECTED:
                        deadline.reschedule(ends_s)

                watched = {"trace": trace}
                request = client.build_request("POST", self._url, content=content, headers=headers, extensions=watched)
                reply = await _reply(client, request)
        except BaseException:
            await client.aclose()
            raise
        self._idle.append(client)
        return reply

    async def close(self) -> None:
        while self._idle:
            await self._idle.pop().aclose()

    def _made(self) -> httpx.AsyncClient:
        # The environment's proxies are none of the gateway's.
        return httpx.AsyncClient(verify=self._verify, limits=_ONE, timeout=self._timeout_s, trust_env=False)


async def _reply(client: httpx.AsyncClient, request: httpx.Request) -> Reply:
    response = await client.send(request, stream=True)
    try:
        if response.status_code != _OK:
            return Reply(response.status_code)
        if response.headers.get("Content-Encoding", "identity").strip().lower() != "identity":
            raise ValueError("a compressed answer, which nobody asked for")
        return Reply(_OK, await _bounded(response))
    finally:
        await response.aclose()


async def _bounded(response: httpx.Response) -> bytes:
    content = bytearray()
    async for part in response.aiter_raw():
        content += part
        if len(content) > ANSWER_BYTES_MAX:
            raise ValueError("too long an answer")
    return bytes(content)
