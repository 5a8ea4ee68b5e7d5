"""MQTT packet by packet over a bare socket: what no library would send, and every answer as it came."""

import contextlib
import socket
from collections.abc import Iterator

from tidegate.mqtt.frames import frame_size
from tidegate.mqtt.packets import Connack, Connect, Packet, Ping, Pong, Publish, Suback, Subscribe, Will, encode, parse
from tidegate.mqtt.properties import EMPTY, REASON_STRING, TOPIC_ALIAS, Properties

ANSWER_S_MAX = 15.0
QUIET_S = 0.3


class Wire:
    """One connection. ``version`` is 3 (3.1), 4 (3.1.1) or 5."""

    def __init__(self, address: tuple[str, int], version: int = 4) -> None:
        self.version = version
        self._socket = socket.create_connection(address, ANSWER_S_MAX)
        self._collected = b""
        self._packet_id = 0

    def close(self) -> None:
        """Without a word."""
        self._socket.close()

    def say(self, packet: Packet) -> None:
        self._socket.sendall(encode(packet, self.version))

    def hear(self, timeout_s: float = ANSWER_S_MAX) -> Packet | None:
        """The next packet; None where the connection was closed instead."""
        self._socket.settimeout(timeout_s)
        while True:
            header, size = frame_size(self._collected, 0)
            if header and len(self._collected) >= size:
                packet, self._collected = self._collected[:size], self._collected[size:]
                return parse(packet[0], packet[header:], self.version, properties_max=100)
            try:
                chunk = self._socket.recv(65_536)
            except ConnectionResetError:
                chunk = b""
            if not chunk:
                return None
            self._collected += chunk

    def connect(
        self,
        user: str | None,
        password: str | None,
        client_id: str | None = None,
        *,
        clean: bool = True,
        will: str = "",
        properties: Properties = EMPTY,
    ) -> Connack:
        """What the answer is. Who names no client id takes its user name for it."""
        told = (user or "") if client_id is None else client_id
        self.say(
            Connect(
                version=self.version,
                client_id=told.encode(),
                clean=clean,
                keep_alive_s=60,
                will=Will(topic=will.encode(), payload=b"gone", qos=1, retain=False) if will else None,
                user=None if user is None else user.encode(),
                password=None if password is None else password.encode(),
                properties=properties,
            )
        )
        answer = self.hear()
        assert isinstance(answer, Connack), answer
        return answer

    def publish(
        self, topic: str, payload: bytes = b"1", qos: int = 1, *, retain: bool = False, alias: int | None = None
    ) -> Packet | None:
        """What the answer is; at QoS 0 that to a ping behind it. None where the connection is closed."""
        self._packet_id += 1
        given = EMPTY if alias is None else Properties(values={TOPIC_ALIAS: alias})
        packet_id = self._packet_id if qos else 0
        self.say(
            Publish(
                topic=topic.encode(), payload=payload, qos=qos, retain=retain, packet_id=packet_id, properties=given
            )
        )
        return self.hear() if qos else self.ping()

    def ping(self) -> Packet | None:
        with contextlib.suppress(ConnectionError):
            self.say(Ping())
        return self.hear()

    def subscribe(self, *filters: str, qos: int = 1) -> list[int]:
        """The code of each."""
        self._packet_id += 1
        self.say(Subscribe(packet_id=self._packet_id, entries=tuple((one.encode(), qos) for one in filters)))
        answer = self.hear()
        assert isinstance(answer, Suback), answer
        return list(answer.codes)

    def messages(self, quiet_s: float = QUIET_S) -> Iterator[tuple[str, bytes]]:
        """What comes until it is quiet for so long."""
        while True:
            try:
                heard = self.hear(quiet_s)
            except TimeoutError:
                return
            assert isinstance(heard, Publish), heard
            yield heard.topic.decode(), heard.payload

    @property
    def lives(self) -> bool:
        return isinstance(self.ping(), Pong)

    def is_closed(self, within_s: float = ANSWER_S_MAX) -> bool:
        """Whether it is, with or without last words."""
        try:
            while self.hear(within_s) is not None:
                pass
        except TimeoutError:
            return False
        return True


def sentence(packet: Packet | None) -> str:
    """The reason string of an answer."""
    assert packet is not None
    told = getattr(packet, "properties", EMPTY).values.get(REASON_STRING, b"")
    return str(told.decode())
