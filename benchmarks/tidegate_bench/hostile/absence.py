"""An application that subscribes to all telemetry, leaves, and never comes back; and what is kept for it."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from tidegate.brokers.nats.embedded import EmbeddedBrokers
from tidegate.brokers.nats.ingest import MQTT_STREAM
from tidegate.brokers.settings import BrokerSettings
from tidegate.bus.issued import Credentials
from tidegate.bus.jetstream import ask
from tidegate.bus.wire import Wire
from tidegate.model.errors import BrokerUnavailableError
from tidegate.model.readings import TELEMETRY
from tidegate.mqtt.client import DISCONNECT, encode_connect
from tidegate_bench.hostile.packets import subscribe, text
from tidegate_bench.hostile.sieges import ABSENT

LOOK_S = 1.0
# A few seconds' worth of what is sent meanwhile.
SETTINGS = BrokerSettings(nodes=1, slices=1, session_messages_max=2_000, session_bytes_max=1024**2)
_CONNACK_BYTES, _SUBACK_BYTES = 4, 5


class Kept:
    """What the broker kept for absent sessions, looked at as ``tidegate up`` looks after them: about every second."""

    def __init__(self, brokers: EmbeddedBrokers) -> None:
        assert brokers.installation is not None
        self.bytes_now = self.bytes_peak = 0
        self.alarm: str | None = None
        self._quotas = brokers.session_quotas()
        self._wire = Wire(brokers.installation.data_urls, name="bench-hostile")
        self._over = threading.Event()

    @contextlib.contextmanager
    def watched(self) -> Iterator["Kept"]:
        thread = threading.Thread(target=self._watch, name="kept")
        thread.start()
        try:
            yield self
        finally:
            self._over.set()
            thread.join()
            self._quotas.close()
            self._wire.close()

    def row(self) -> dict[str, Any]:
        return {"kept_bytes_peak": self.bytes_peak, "kept_alarm": self.alarm}

    def _watch(self) -> None:
        while not self._over.wait(LOOK_S):
            with contextlib.suppress(BrokerUnavailableError):
                self.alarm = self._quotas.check()
                self.bytes_now = int(ask(self._wire, f"STREAM.INFO.{MQTT_STREAM}")["state"]["bytes"])
                self.bytes_peak = max(self.bytes_peak, self.bytes_now)


async def subscribe_and_leave(address: tuple[str, int], as_whom: Credentials) -> None:
    user, password = as_whom(ABSENT)
    reader, writer = await asyncio.open_connection(*address)
    try:
        writer.write(encode_connect(ABSENT, user=user, password=password, clean=False))
        await reader.readexactly(_CONNACK_BYTES)
        writer.write(subscribe(4, text(f"{TELEMETRY}/#".encode()) + b"\1"))
        answer = await reader.readexactly(_SUBACK_BYTES)
        assert answer[-1] == 1, "it may read everything, at QoS 1"
        writer.write(DISCONNECT)
        await reader.read()
    finally:
        writer.close()
