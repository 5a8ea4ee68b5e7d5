"""gmqtt."""

import asyncio
import logging
from typing import Any

import gmqtt
from gmqtt.mqtt.handler import MQTTConnectError
from gmqtt.storage import PersistentStorage

from tidegate_bench.interop.peer import NO_EXTRAS, ConnectAnswer, Endpoint, Extras, Heard, InteropPeer, Options, in_time

# The library says on standard error what behaviours provoke on purpose.
_QUIET = logging.getLogger("gmqtt")
_QUIET.addHandler(logging.NullHandler())
_QUIET.propagate = False
_NAMES = {"content_type": "content_type", "expiry_s": "message_expiry_interval", "alias": "topic_alias"}


class _Once(gmqtt.Client):  # type: ignore[misc]
    """A connection that ends stays ended."""

    async def reconnect(self, delay: bool = False) -> None:  # noqa: ARG002 - the library's signature
        return


class GmqttPeer(InteropPeer):
    KIND = "gmqtt"

    def __init__(self, endpoint: Endpoint, options: Options, prefix: str) -> None:
        super().__init__(endpoint, options, prefix)
        self._five = endpoint.version == 5
        self._storage = PersistentStorage()
        self._client = client = _Once(
            options.client_id,
            clean_session=options.clean,
            will_message=self._will(),
            persistent_storage=self._storage,
            logger=_QUIET,
            **({"session_expiry_interval": options.session_s} if self._five else {}),
        )
        client.set_auth_credentials(endpoint.user, endpoint.password if options.password is None else options.password)
        self._session_present: bool | None = None
        self._announced: dict[str, Any] = {}
        self._answers: dict[tuple[str, int], asyncio.Future[Any]] = {}
        client.on_connect = self._on_connect
        client.on_message = self._on_message
        client.on_disconnect = self._on_disconnect
        client.on_subscribe = lambda _, mid, codes, __: self._answer("sub", mid, codes)
        client.on_unsubscribe = lambda _, mid, codes: self._answer("unsub", mid, codes)

    def _will(self) -> gmqtt.Message | None:
        will = self.options.will
        if will is None:
            return None
        delay = {"will_delay_interval": will.delay_s} if will.delay_s else {}
        return gmqtt.Message(self.topic(will.topic), will.payload, qos=will.qos, retain=will.retain, **delay)

    def _on_connect(self, _: Any, flags: int, __: int, properties: dict[str, Any]) -> None:
        self._session_present = bool(flags & 1)
        self._announced = {
            name: values[0] if isinstance(values, list) else values for name, values in properties.items()
        }

    def _on_disconnect(self, _: Any, packet: Any, *__: Any) -> None:
        # Where the socket just closed, the library makes up a DISCONNECT without a code.
        self.lost(packet[0] if isinstance(packet, bytes | bytearray) and packet and packet[0] > 0x80 else None)

    def _on_message(self, _: Any, topic: str, payload: bytes, qos: int, properties: dict[str, Any]) -> int:
        response = _first(properties, "response_topic")
        correlation = _first(properties, "correlation_data")
        self.hear(
            Heard(
                topic=topic,
                payload=bytes(payload),
                qos=qos,
                retain=bool(properties["retain"]),
                duplicate=bool(properties["dup"]),
                extras=Extras(
                    user=tuple(tuple(pair) for pair in properties.get("user_property", ())),
                    content_type=_first(properties, "content_type"),
                    response_topic=response.removeprefix(self.prefix) if response is not None else None,
                    correlation=bytes(correlation).decode() if correlation is not None else None,
                    expiry_s=_first(properties, "message_expiry_interval"),
                    identifiers=tuple(properties.get("subscription_identifier", ())),
                ),
            )
        )
        return 0

    def _future(self, kind: str, mid: int) -> asyncio.Future[Any]:
        return self._answers.setdefault((kind, mid), self._loop.create_future())

    def _answer(self, kind: str, mid: int, codes: Any) -> None:
        future = self._future(kind, mid)
        if not future.done():
            future.set_result(tuple(codes))

    async def open(
        self, *filters: tuple[str, int], again: bool = False, identifier: int | None = None
    ) -> ConnectAnswer:
        connecting = self._client.connect(
            self.endpoint.host, self.endpoint.port, keepalive=self.options.keep_alive_s, version=self.endpoint.version
        )
        try:
            if await in_time(connecting, False) is False:
                return ConnectAnswer(code="no answer")
        except MQTTConnectError as error:
            return ConnectAnswer(code=error._code)
        except OSError:
            return ConnectAnswer(code="cannot connect")
        granted = await self._subscribe(filters, identifier) if filters and not again else ()
        return ConnectAnswer(code=0, session_present=self._session_present, granted=granted, announced=self._announced)

    async def subscribe(self, *filters: tuple[str, int]) -> tuple[int, ...]:
        return await self._subscribe(filters, None)

    async def _subscribe(self, filters: tuple[tuple[str, int], ...], identifier: int | None) -> tuple[int, ...]:
        subscriptions = [gmqtt.Subscription(self.topic(name), qos=qos) for name, qos in filters]
        named = {"subscription_identifier": identifier} if identifier is not None else {}
        mid = self._client.subscribe(subscriptions, **named)
        codes: tuple[int, ...] = await in_time(self._future("sub", mid), ())
        return codes

    async def unsubscribe(self, *filters: str) -> tuple[int | str, ...]:
        mid = self._client.unsubscribe([self.topic(name) for name in filters])
        codes: tuple[int | str, ...] = await in_time(self._future("unsub", mid), ("no answer",))
        return codes

    async def publish(
        self, topic: str, *payloads: bytes, qos: int = 0, retain: bool = False, extras: Extras = NO_EXTRAS
    ) -> list[int | str | None]:
        name = self.topic(topic) if topic else ""
        properties = self._properties(extras) if self._five else {}
        for payload in payloads:
            self._client.publish(name, payload, qos=qos, retain=retain, **properties)
        emptied = await in_time(self._storage.wait_empty(), False)
        return [None if emptied is None else "no answer"] * len(payloads)

    def _properties(self, extras: Extras) -> dict[str, Any]:
        found = {theirs: value for ours, theirs in _NAMES.items() if (value := getattr(extras, ours)) is not None}
        if extras.response_topic is not None:
            found["response_topic"] = self.topic(extras.response_topic)
        if extras.correlation is not None:
            found["correlation_data"] = extras.correlation.encode()
        if extras.user:
            found["user_property"] = list(extras.user)
        return found

    async def close(self) -> None:
        if not self._closed.is_set():
            await in_time(self._client.disconnect(), None, 2.0)

    async def vanish(self) -> None:
        # The library has no call for it.
        self._client._connection._transport.abort()
        await in_time(self._closed.wait(), False)


def _first(properties: dict[str, Any], name: str) -> Any:
    values = properties.get(name)
    return values[0] if values else None
