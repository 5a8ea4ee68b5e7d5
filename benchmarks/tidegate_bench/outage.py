"""``tidegate bench outage``: controller and control bus are gone for a minute; clients must not notice.

Two brokers behind one gateway, routed three to one. Existing clients publish at QoS 1 all the time; new ones come
during the outage and stay until it is over, so that where they went can be counted at the brokers.
"""

import asyncio
import contextlib
import json
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any, cast

from tidegate.brokers.nats.embedded import EmbeddedBrokers
from tidegate.brokers.settings import BrokerSettings
from tidegate.bus.client import Bus
from tidegate.bus.documents import GATEWAYS, ROUTES
from tidegate.bus.issued import Credentials
from tidegate.local.chain import Chain
from tidegate.model.errors import BrokerUnavailableError
from tidegate.model.observations import GatewayState
from tidegate.model.readings import TELEMETRY
from tidegate.model.routes import Broker, Routes
from tidegate.mqtt.client import encode_connect, encode_publish
from tidegate.report.checks import Check, Report
from tidegate.report.progress import Progress
from tidegate.settings.tree import Settings
from tidegate_bench.rig.credentials import credentials

OUTAGE_S = 60.0
BEFORE_S = 5.0
FIRST_ROUTES_S_MAX = 10.0
ROUTES_KNOWN_S = 2.0
EXISTING, NEW = 40, 60
EVERY_S = 0.25
# A client notices an acknowledgement later than this.
NOTICED_S = 1.0
REPORTS_AGAIN_S_MAX = 10.0
WEIGHTS = (3.0, 1.0)
# How far the share of the first broker may be from what the routes say.
SHARE_OFF_MAX = 0.1
GATEWAY = "gateway-1"
READING = b'{"value": 21.5}'


def run(progress: Progress, out: Path | None) -> Report:
    started_s = time.monotonic()
    with contextlib.ExitStack() as opened:
        state = out or Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="tidegate-outage-")))
        settings = Settings(broker=BrokerSettings(nodes=len(WEIGHTS), slices=1))
        chain = opened.enter_context(Chain(state, settings, progress.update, nodes=0, logs=True))
        progress.step("Starting two brokers, the control bus, a gateway and a controller.")
        chain.start_brokers()
        chain.start_parts()
        for _ in chain.ready():
            pass
        rows, checks = asyncio.run(_Outage(chain, progress).run())
    return Report("bench outage", rows, checks, round(time.monotonic() - started_s, 1))


class PublishingClient:
    """One client that publishes at QoS 1 until it is cancelled, and says what it noticed."""

    def __init__(self, number: int, address: tuple[str, int], as_whom: Credentials) -> None:
        self.number = number
        self.name = f"outage-{number}"
        self.noticed: list[str] = []
        self.acknowledged = 0
        self.slowest_s = 0.0
        self.connected = asyncio.Event()
        self._address, self._as_whom = address, as_whom

    async def live(self) -> None:
        try:
            await self._publish()
        except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
            self.noticed.append(type(error).__name__)

    async def _publish(self) -> None:
        user, password = self._as_whom(self.name)
        reader, writer = await asyncio.open_connection(*self._address)
        try:
            writer.write(encode_connect(self.name, user=user, password=password))
            async with asyncio.timeout(10.0):
                answer = await reader.readexactly(4)
            if answer[3]:
                self.noticed.append(f"CONNACK {answer[3]}")
                return
            self.connected.set()
            packet = encode_publish(f"{TELEMETRY}/{self.name}".encode(), READING, packet_id=1)
            while True:
                started_s = time.monotonic()
                writer.write(packet)
                await reader.readexactly(4)
                self._acknowledged(time.monotonic() - started_s)
                await asyncio.sleep(EVERY_S)
        finally:
            writer.close()

    def _acknowledged(self, delay_s: float) -> None:
        self.acknowledged += 1
        self.slowest_s = max(self.slowest_s, delay_s)
        if delay_s > NOTICED_S:
            self.noticed.append(f"acknowledged after {delay_s:.1f} s")

    def row(self) -> dict[str, Any]:
        return {
            "client": self.number,
            "acknowledged": self.acknowledged,
            "slowest_ms": round(1000 * self.slowest_s, 1),
            "noticed": "; ".join(self.noticed),
        }


class _Outage:
    def __init__(self, chain: Chain, progress: Progress) -> None:
        self._chain, self._progress = chain, progress
        # Before the outage: devices keep their passwords.
        self._as_whom = credentials(chain.installation)
        self._tasks: list[asyncio.Task[None]] = []

    async def run(self) -> tuple[list[dict[str, Any]], list[Check]]:
        chain = self._chain
        await asyncio.to_thread(self._route)
        await asyncio.sleep(ROUTES_KNOWN_S)
        existing = await self._start(range(EXISTING))
        await asyncio.sleep(BEFORE_S)
        before = await asyncio.to_thread(self._at_brokers)
        self._progress.step("Controller and control bus are killed.")
        await asyncio.to_thread(chain.parts["controller-1"].kill)
        brokers = cast(EmbeddedBrokers, chain.brokers)  # the kind that can be disturbed
        await asyncio.to_thread(brokers.kill_control)
        new = await self._newcomers()
        during = await asyncio.to_thread(self._at_brokers)
        self._progress.step("The control bus is started again, and the controller.")
        await asyncio.to_thread(brokers.start_control)
        reports_again_s = await self._reports_again(time.time())
        chain.parts["controller-1"].start()
        await asyncio.sleep(1.0)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        return _report(existing, new, before, during, reports_again_s)

    def _route(self) -> None:
        """Three of four new connections to the first broker, from now on."""
        brokers = tuple(
            Broker(name=f"broker-{index + 1}", host=host, port=port, weight=weight)
            for index, ((host, port), weight) in enumerate(
                zip(self._chain.installation.mqtt_addresses, WEIGHTS, strict=True)
            )
        )
        with Bus(self._chain.installation.control_urls) as bus:
            deadline_s = time.monotonic() + FIRST_ROUTES_S_MAX
            # The controller says its own once, when it has seen the brokers.
            while bus.get(ROUTES) is None and time.monotonic() < deadline_s:
                time.sleep(0.1)
            bus.put(ROUTES, Routes(brokers=brokers))

    async def _start(self, numbers: range) -> list[PublishingClient]:
        address = self._chain.installation.gateway_mqtt
        assert address is not None
        clients = [PublishingClient(number, address, self._as_whom) for number in numbers]
        for client in clients:
            self._tasks.append(asyncio.create_task(client.live()))
            await asyncio.sleep(0.02)
        return clients

    async def _newcomers(self) -> list[PublishingClient]:
        """New clients, spread over the whole outage."""
        clients: list[PublishingClient] = []
        began_s = time.monotonic()
        for number in range(NEW):
            clients += await self._start(range(EXISTING + number, EXISTING + number + 1))
            due_s = began_s + OUTAGE_S * (number + 1) / (NEW + 1)
            self._progress.update(f"Out for {time.monotonic() - began_s:.0f} s; {number + 1} new clients.")
            await asyncio.sleep(max(0.0, due_s - time.monotonic()))
        await asyncio.sleep(max(0.0, began_s + OUTAGE_S - time.monotonic()))
        return clients

    def _at_brokers(self) -> list[int]:
        """Clients connected by MQTT, as each broker counts them."""
        return [_mqtt_connections(url) for url in self._chain.installation.monitor_urls]

    async def _reports_again(self, since_s: float) -> float:
        began_s = time.monotonic()
        while time.monotonic() - began_s < 3 * REPORTS_AGAIN_S_MAX:
            state = await asyncio.to_thread(self._gateway_state)
            if state is not None and state.measured_at_s > since_s:
                return time.monotonic() - began_s
            await asyncio.sleep(0.1)
        return float("inf")

    def _gateway_state(self) -> GatewayState | None:
        with contextlib.suppress(BrokerUnavailableError), Bus(self._chain.installation.control_urls) as bus:
            return bus.get(GATEWAYS, GATEWAY)
        return None


def _mqtt_connections(url: str) -> int:
    with urllib.request.urlopen(f"{url}/connz?limit=1000", timeout=5) as answer:  # noqa: S310 - the broker's own page
        return sum(one.get("mqtt_client", "").startswith("outage-") for one in json.load(answer)["connections"])


def share_off(before: list[int], during: list[int]) -> float:
    """How far the first broker's share of the newcomers is from its weight's."""
    came = [now - then for then, now in zip(before, during, strict=True)]
    return abs(came[0] / max(1, sum(came)) - WEIGHTS[0] / sum(WEIGHTS))


def _report(
    existing: list[PublishingClient],
    new: list[PublishingClient],
    before: list[int],
    during: list[int],
    reports_again_s: float,
) -> tuple[list[dict[str, Any]], list[Check]]:
    rows: list[dict[str, Any]] = [client.row() for client in (*existing, *new)]
    rows.append({"brokers_before": before, "brokers_during": during, "weights": list(WEIGHTS)})
    return rows, [
        Check.equal("existing_noticed", sum(bool(client.noticed) for client in existing), 0),
        Check.equal("new_refused", sum(not client.connected.is_set() for client in new), 0),
        Check.at_most("new_share_off", round(share_off(before, during), 3), SHARE_OFF_MAX),
        Check.at_most("reports_again_s", round(reports_again_s, 2), REPORTS_AGAIN_S_MAX),
    ]
