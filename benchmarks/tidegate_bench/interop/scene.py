"""Where one behaviour is played: the clients of one kind at one endpoint, under names that no other run uses."""

import asyncio
import secrets
from typing import Any

from tidegate_bench.interop.peer import NO_EXTRAS, Endpoint, Extras, InteropPeer, Options, WillMessage


class Scene:
    """Clients are ended when the play is over. Use as an asynchronous context manager."""

    def __init__(self, kind: type[InteropPeer], endpoint: Endpoint) -> None:
        self.kind, self.endpoint = kind, endpoint
        self.token = secrets.token_hex(4)
        self._peers: list[InteropPeer] = []
        self._sender: InteropPeer | None = None

    async def __aenter__(self) -> "Scene":
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.gather(*(peer.close() for peer in self._peers), return_exceptions=True)

    @property
    def five(self) -> bool:
        return self.endpoint.version == 5

    def peer(
        self,
        name: str,
        *,
        clean: bool = True,
        session_s: int = 0,
        keep_alive_s: int = 60,
        will: WillMessage | None = None,
        password: str | None = None,
    ) -> InteropPeer:
        """A client that is not connected yet. The same name gives the same client id."""
        options = Options(
            client_id=f"{self.token}-{name}",
            clean=clean,
            session_s=session_s,
            keep_alive_s=max(keep_alive_s, self.kind.KEEP_ALIVE_S_MIN),
            will=will,
            password=password,
        )
        peer = self.kind(self.endpoint, options, f"interop/{self.token}/")
        self._peers.append(peer)
        return peer

    def keeper(self, name: str, *, session_s: int = 300, will: WillMessage | None = None) -> InteropPeer:
        """A client whose session outlives its connection."""
        return self.peer(name, clean=False, session_s=session_s, will=will)

    async def listener(self, name: str, *filters: tuple[str, int], **options: Any) -> InteropPeer:
        peer = self.peer(name, **options)
        await peer.open(*filters)
        return peer

    async def send(
        self, topic: str, *payloads: bytes, qos: int = 0, retain: bool = False, extras: Extras = NO_EXTRAS
    ) -> list[int | str | None]:
        """From one client that only sends."""
        if self._sender is None:
            self._sender = self.peer("sender")
            await self._sender.open()
        return await self._sender.publish(topic, *payloads, qos=qos, retain=retain, extras=extras)
