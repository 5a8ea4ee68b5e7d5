"""paho-mqtt, with its network thread."""

import asyncio
import socket
from typing import Any

from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion
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

_UNANSWERED = ConnectAnswer(code="no answer")


class PahoPeer(InteropPeer):
    KIND = "paho"

    def __init__(self, endpoint: Endpoint, options: Options, prefix: str) -> None:
        super().__init__(endpoint, options, prefix)
        five = endpoint.version == 5
        self._five = five
        self._client = client = Client(
            CallbackAPIVersion.VERSION2,
            client_id=options.client_id,
            clean_session=None if five else options.clean,
            protocol=endpoint.version,  # type: ignore[arg-type]
            reconnect_on_failure=False,
        )
        client.username_pw_set(endpoint.user, endpoint.password if options.password is None else options.password)
        if options.will is not None:
            will = options.will
            client.will_set(
                prefix + will.topic, will.payload, will.qos, will.retain, paho_properties.will_properties(options)
            )
        self._opened: asyncio.Future[ConnectAnswer] = self._loop.create_future()
        self._answers: dict[tuple[str, int], asyncio.Future[Any]] = {}
        client.on_connect = self._on_connect
        client.on_connect_fail = lambda *_: self._tell(self._settle_opening, ConnectAnswer(code="cannot connect"))
        client.on_disconnect = self._on_disconnect
        client.on_message = lambda _, __, message: self._tell(self._on_message, message)
        client.on_subscribe = lambda _, __, mid, codes, ___: self._tell(self._answer, "sub", mid, codes)
        client.on_unsubscribe = lambda _, __, mid, codes, ___: self._tell(self._answer, "unsub", mid, codes)
        client.on_publish = lambda _, __, mid, code, ___: self._tell(self._answer, "pub", mid, code)

    # -- callbacks of the network thread

    def _tell(self, callback: Any, *arguments: Any) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(callback, *arguments)

    def _on_connect(self, _: Any, __: Any, flags: Any, code: Any, properties: Any) -> None:
        said = paho_properties.announced(properties) if self._five else {}
        opened = ConnectAnswer(code=code.value, session_present=bool(flags.session_present), announced=said)
        self._tell(self._settle_opening, opened)

    def _on_disconnect(self, _: Any, __: Any, flags: Any, code: Any, ___: Any) -> None:
        said = code.value if flags.is_disconnect_packet_from_server else None
        self._tell(self.lost, said)
        self._tell(self._settle_opening, _UNANSWERED)

    def _settle_opening(self, opened: ConnectAnswer) -> None:
        if not self._opened.done():
            self._opened.set_result(opened)

    def _on_message(self, message: MQTTMessage) -> None:
        self.hear(paho_properties.heard(message, self.prefix))

    def _future(self, kind: str, mid: int) -> asyncio.Future[Any]:
        return self._answers.setdefault((kind, mid), self._loop.create_future())

    def _answer(self, kind: str, mid: int, said: Any) -> None:
        future = self._future(kind, mid)
        if not future.done():
            future.set_result(said)

    # -- what behaviours call

    async def open(
        self, *filters: tuple[str, int], again: bool = False, identifier: int | None = None
    ) -> ConnectAnswer:
        endpoint, options = self.endpoint, self.options
        five: dict[str, Any] = {}
        if self._five:
            five = {"clean_start": options.clean, "properties": paho_properties.connect_properties(options)}
        self._client.connect_async(endpoint.host, endpoint.port, options.keep_alive_s, **five)
        self._client.loop_start()
        opened = await in_time(self._opened, _UNANSWERED)
        if filters and opened.code == 0 and not again:
            granted = await self._subscribe(filters, identifier)
            return ConnectAnswer(
                code=opened.code,
                session_present=opened.session_present,
                granted=granted,
                announced=opened.announced,
            )
        return opened

    async def subscribe(self, *filters: tuple[str, int]) -> tuple[int, ...]:
        return await self._subscribe(filters, None)

    async def _subscribe(self, filters: tuple[tuple[str, int], ...], identifier: int | None) -> tuple[int, ...]:
        if self._five:
            asked: Any = [(self.topic(name), SubscribeOptions(qos=qos)) for name, qos in filters]
        else:
            asked = [(self.topic(name), qos) for name, qos in filters]
        _, mid = self._client.subscribe(asked, properties=paho_properties.subscribe_properties(identifier))
        codes = await in_time(self._future("sub", mid or 0), [])
        return tuple(code.value for code in codes)

    async def unsubscribe(self, *filters: str) -> tuple[int | str, ...]:
        _, mid = self._client.unsubscribe([self.topic(name) for name in filters])
        codes = await in_time(self._future("unsub", mid or 0), None)
        return ("no answer",) if codes is None else tuple(code.value for code in codes)

    async def publish(
        self, topic: str, *payloads: bytes, qos: int = 0, retain: bool = False, extras: Extras = NO_EXTRAS
    ) -> list[int | str | None]:
        properties = paho_properties.publish_properties(extras, self.prefix) if self._five else None
        name = self.topic(topic) if topic else ""
        sent = [self._client.publish(name, payload, qos, retain, properties) for payload in payloads]
        codes = []
        for info in sent:
            code = await in_time(self._future("pub", info.mid), None)
            codes.append("no answer" if code is None else code.value if qos else None)
        return codes

    async def close(self) -> None:
        if not self._closed.is_set():
            self._client.disconnect()
            await in_time(self._closed.wait(), False, 1.0)
        await self._end_thread()

    async def vanish(self) -> None:
        connection = self._client.socket()
        if isinstance(connection, socket.socket):
            connection.shutdown(socket.SHUT_RDWR)
        await in_time(self._closed.wait(), False, WAIT_S)
        await self._end_thread()

    async def fall_silent(self) -> None:
        await self._end_thread()

    async def _end_thread(self) -> None:
        await self._loop.run_in_executor(None, self._client.loop_stop)
