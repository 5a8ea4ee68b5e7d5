"""What all connections of one gateway share: settings, routes, advice, counters, classes, and who is connected."""

import time
from collections.abc import Sequence

from tidegate.gateway.advising import AdviceInForce
from tidegate.gateway.classes import Classes
from tidegate.gateway.counting import Counters
from tidegate.gateway.device_side import DeviceSide
from tidegate.gateway.mqtt.opening import Connect
from tidegate.gateway.routing import Router
from tidegate.gateway.settings import GatewaySettings
from tidegate.model.classes import DEFAULT_CLASSES, DeviceClass
from tidegate.model.observations import GatewayState
from tidegate.model.routes import Broker


class Gate:
    def __init__(
        self,
        settings: GatewaySettings,
        router: Router,
        advice: AdviceInForce,
        classes: Sequence[DeviceClass] = DEFAULT_CLASSES,
    ) -> None:
        self.settings = settings
        self.router = router
        self.advice = advice
        self.counters = Counters()
        self.classes = Classes(classes)
        self._devices: set[DeviceSide] = set()
        self._by_client: dict[str, DeviceSide] = {}

    def admit(self, device: DeviceSide) -> bool:
        if len(self._devices) >= self.settings.connections_max:
            self.counters.refuse("too many connections")
            return False
        self._devices.add(device)
        return True

    def accepted(self, device: DeviceSide, client_id: str, broker: Broker) -> None:
        """A broker took the client on: it may come back to it."""
        self.router.accepted(client_id, broker)
        if client_id:
            self._by_client[client_id] = device

    def leave(self, device: DeviceSide) -> None:
        self._devices.discard(device)
        if device.connect is not None and self._by_client.get(device.connect.client_id) is device:
            del self._by_client[device.connect.client_id]

    async def make_way(self, connect: Connect) -> None:
        """A client that is still connected here connects again: its old connection ends first.

        A broker that met both at once would hold the new one back for a second. Only who says the same password is
        believed to be the same client; anybody else is for the broker to judge.
        """
        before = self._by_client.get(connect.client_id)
        if before is not None and before.connect is not None and before.connect.credentials == connect.credentials:
            await before.give_way()

    def close_all(self) -> None:
        for device in tuple(self._devices):
            device.close()

    def abort_all(self) -> None:
        for device in tuple(self._devices):
            if device.transport is not None:
                device.transport.abort()

    def state(self, address: str) -> GatewayState:
        counters = self.counters
        return GatewayState(
            name=self.settings.name,
            address=address,
            measured_at_s=time.time(),
            connections=len(self._devices),
            publishes=counters.publishes,
            acknowledged=counters.acknowledged,
            advised=counters.advised,
            bytes_in=counters.bytes_in,
            bytes_out=counters.bytes_out,
            refused=dict(counters.refused),
            brokers=dict(self.router.connections),
            classes=self.classes.state(),
        )
