"""aiomqtt."""

import asyncio
import contextlib
import logging
import socket
from typing import Any

import aiomqtt
from paho.mqtt.subscribeoptions import SubscribeOptions

from tidegate_bench.interop import paho_properties
from tidegate_bench.interop.peer import (
    NO_EXTRAS,
    WAIT_S,
    ConnectAnswer,
    Endpoint,
    Extras,
    InteropPeer,
    Options,
    in_time,
)

_QUIET = logging.getLogger("aiomqtt")
_QUIET.addHandler(logging.NullHandler())
_QUIET.propagate = False


class AiomqttPeer(InteropPeer):
    KIND = "aiomqtt"

    def __init__(self, endpoint: Endpoint, options: Options, prefix: str) -> None:
        super().__init__(endpoint, options, prefix)
        self._five = endpoint.version == 5
        will = options.will
        version: dict[str, Any] = {"protocol": aiomqtt.ProtocolVersion.V311, "clean_session": options.clean}
        if self._five:
            version = {
                "protocol": aiomqtt.ProtocolVersion.V5,
                "clean_start": options.clean,
                "properties": paho_properties.connect_properties(options),
            }
        self._client = aiomqtt.Client(
            endpoint.host,
            endpoint.port,
            username=endpoint.user,
            password=endpoint.password if options.password is None else options.password,
            identifier=options.client_id,
            keepalive=options.keep_alive_s,
            timeout=WAIT_S,
            logger=_QUIET,
            will=aiomqtt.Will(
                prefix + will.topic, will.payload, will.qos, will.retain, paho_properties.will_properties(options)
            )
            if will
            else None,
            **version,
        )
        self._reader: asyncio.Task[None] | None = None

    async def open(
        self, *filters: tuple[str, int], again: bool = False, identifier: int | None = None
    ) -> ConnectAnswer:
        try:
            await self._client.__aenter__()
        except aiomqtt.MqttError as error:
            return ConnectAnswer(code=_code(error))
        self._reader = self._loop.create_task(self._read())
        granted = await self._subscribe(filters, identifier) if filters and not again else ()
        return ConnectAnswer(code=0, granted=granted)

    async def _read(self) -> None:
        try:
            async for message in self._client.messages:
                self.hear(paho_properties.heard(message, self.prefix))
        except aiomqtt.MqttError as error:
            self.lost(_disconnect_code(error.__cause__))

    async def subscribe(self, *filters: tuple[str, int]) -> tuple[int, ...]:
        return await self._subscribe(filters, None)

    async def _subscribe(self, filters: tuple[tuple[str, int], ...], identifier: int | None) -> tuple[int, ...]:
        if self._five:
            asked: Any = [(self.topic(name), SubscribeOptions(qos=qos)) for name, qos in filters]
        else:
            asked = [(self.topic(name), qos) for name, qos in filters]
        try:
            codes = await self._client.subscribe(asked, properties=paho_properties.subscribe_properties(identifier))
        except aiomqtt.MqttError:
            return ()
        return tuple(code if isinstance(code, int) else code.value for code in codes)

    async def unsubscribe(self, *filters: str) -> tuple[int | str, ...]:
        await self._client.unsubscribe([self.topic(name) for name in filters])
        return ()

    async def publish(
        self, topic: str, *payloads: bytes, qos: int = 0, retain: bool = False, extras: Extras = NO_EXTRAS
    ) -> list[int | str | None]:
        properties = paho_properties.publish_properties(extras, self.prefix) if self._five else None
        name = self.topic(topic) if topic else ""
        codes: list[int | str | None] = []
        for payload in payloads:
            try:
                await self._client.publish(name, payload, qos, retain, properties)
                codes.append(None)
            except aiomqtt.MqttError:
                codes.append("no answer")
        return codes

    async def close(self) -> None:
        with contextlib.suppress(aiomqtt.MqttError):
            await self._client.__aexit__(None, None, None)
        if self._reader is not None:
            await asyncio.wait((self._reader,), timeout=1.0)
            self._reader.cancel()

    async def vanish(self) -> None:
        # The library has no call for it: the socket is paho's, which lies below.
        connection = self._client._client.socket()
        if isinstance(connection, socket.socket):
            connection.shutdown(socket.SHUT_RDWR)
        await in_time(self._closed.wait(), False)


def _code(error: BaseException | None) -> int | str:
    code = getattr(error, "rc", None)
    value = getattr(code, "value", code)
    return value if isinstance(value, int) else "no answer"


def _disconnect_code(error: BaseException | None) -> int | None:
    """The broker's own reason; below 0x80 it is the library's word for a socket that closed."""
    code = _code(error)
    return code if isinstance(code, int) and code > 0x80 else None
