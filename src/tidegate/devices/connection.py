"""One MQTT connection as the event loop sees it: bytes come in, its owner is told what they mean."""

import asyncio
from typing import Protocol, cast

from tidegate.mqtt import client as mqtt


class Owner(Protocol):
    """What is told what came in after the connection was accepted."""

    def acknowledge(self, connection: "Connection", packet_id: int) -> None: ...

    def hear(self, connection: "Connection", event: mqtt.Subscribed | mqtt.MessageReceived) -> None: ...


class Connection(asyncio.Protocol):
    """One transport with its decoder. ``answered`` and ``lost`` are the two things that can be waited for."""

    def __init__(self, owner: Owner) -> None:
        loop = asyncio.get_running_loop()
        self.answered: asyncio.Future[mqtt.ConnectionAnswered] = loop.create_future()
        self.lost: asyncio.Future[str] = loop.create_future()
        self.transport: asyncio.Transport | None = None
        self.received_s = loop.time()
        self._owner = owner
        self._decoder = mqtt.Decoder()
        self._loop = loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Not every event loop derives its transports from asyncio's class.
        self.transport = cast(asyncio.Transport, transport)
        # Dialling a dead broker's port from the range of outgoing ports can reach the dialling socket itself.
        if transport.get_extra_info("peername") == transport.get_extra_info("sockname"):
            self.fail("nobody listens there")

    def data_received(self, data: bytes) -> None:
        self.received_s = self._loop.time()
        for event in self._decoder.receive(data):
            if type(event) is mqtt.PublishAcknowledged:
                self._owner.acknowledge(self, event.packet_id)
            elif type(event) is mqtt.MessageReceived or type(event) is mqtt.Subscribed:
                self._owner.hear(self, event)
            elif type(event) is mqtt.ConnectionAnswered and not self.answered.done():
                self.answered.set_result(event)
            elif type(event) is mqtt.ProtocolViolated:
                self.fail(f"it broke the protocol: {event.reason}")

    def connection_lost(self, exc: Exception | None) -> None:
        self.fail(str(exc) if exc else "it closed the connection")

    def fail(self, reason: str) -> None:
        if not self.lost.done():
            self.lost.set_result(reason)
        if self.transport is not None:
            self.transport.abort()
