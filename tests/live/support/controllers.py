"""A real installation whose gateway and processing node exist on paper only, and controllers for it."""

import asyncio
import contextlib
import os
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import msgspec

from support.bus import LEASE_S, ControlBus
from support.clients import publish_all
from support.log import Log
from support.processes import TIDEGATE
from tidegate.brokers.nats.embedded import EmbeddedBrokers
from tidegate.brokers.settings import BrokerSettings
from tidegate.bus.documents import ADVICE, GATEWAYS, LEADER, NODE_LEASES, PROGRESS, Holder
from tidegate.controller.server import Controller
from tidegate.controller.settings import ControllerSettings
from tidegate.model.advice import Advice
from tidegate.model.installation import Installation
from tidegate.model.observations import GatewayState
from tidegate.model.progress import NodeProgress, SliceProgress, WorkTotals

SLICES = 2
# Nodes on paper are never at their limit.
OVERLOAD = "head_age_s > 0.8 and waiting > 1.2 * departure_per_s"
QUICK = {
    "overload": OVERLOAD,
    "period_s": 0.2,
    "lease_s": 1.0,
    "window_s": 1.0,
    "advice_lifetime_s": 2.0,
    "advice_half_life_s": 0.1,
    "nodes_max": 3,
    "options": {"k_recover": 3.0},
}


class Site:
    """A running installation, with a gateway and a processing node that exist on paper only."""

    def __init__(self, brokers: EmbeddedBrokers, state: Path) -> None:
        assert brokers.installation is not None
        self.brokers, self.state, self.here = brokers, state, brokers.installation
        self.bus = ControlBus(self.here)
        self.log = Log(self.here)
        self.audit = self.bus.audit
        self.tell()

    def tell(self) -> None:
        """What gateway and node say of themselves."""
        gateway = GatewayState(
            name="g",
            address="127.0.0.1:1",
            measured_at_s=0,
            connections=40,
            publishers=40,
            publishes=0,
            acknowledged=0,
            advised=0,
        )
        self.bus.put(GATEWAYS, gateway, "g", lease_s=LEASE_S)
        self.bus.put(NODE_LEASES, Holder("paper", "1"), "paper", lease_s=LEASE_S)
        self.commit({})

    def publish(self, count: int) -> None:
        readings = ((f"telemetry/d{number % 7}", b'{"value": 1}') for number in range(count))
        publish_all(self.here, "devices", readings)

    def commit(self, offsets: dict[int, int]) -> None:
        slices = {number: SliceProgress(committed=offset, rows=offset) for number, offset in offsets.items()}
        totals = WorkTotals(rows=sum(offsets.values()))
        self.bus.put(PROGRESS, NodeProgress(node="paper", totals=totals, slices=slices), "paper")

    def commit_all(self) -> None:
        self.commit(self.log.ends())

    def advice(self) -> Advice | None:
        return self.bus.get(ADVICE)

    def leader(self) -> str | None:
        holder = self.bus.get(LEADER)
        return holder.name if holder is not None else None


@contextlib.contextmanager
def started(state: Path) -> Iterator[Site]:
    with EmbeddedBrokers(state, BrokerSettings(nodes=1, slices=SLICES)) as brokers:
        running = Site(brokers, state)
        yield running
        running.bus.close()
        running.log.close()


@contextlib.asynccontextmanager
async def controlling(
    here: Installation, say: Callable[[str], None] = lambda _: None, **settings: object
) -> AsyncIterator[Controller]:
    chosen, stop = msgspec.convert({**QUICK, **settings}, ControllerSettings), asyncio.Event()
    controller = Controller(here, chosen, say=say)
    task = asyncio.create_task(controller.run(stop))
    try:
        yield controller
    finally:
        stop.set()
        await asyncio.wait_for(task, 20)


@contextlib.contextmanager
def process(site: Site, name: str) -> Iterator[subprocess.Popen[str]]:
    command = [*TIDEGATE, "controller", "--name", name, "--state", str(site.state)]
    quick = {"PERIOD_S": "0.2", "WINDOW_S": "1", "ADVICE_LIFETIME_S": "6", "OVERLOAD": OVERLOAD, "NODES_MAX": "3"}
    environment = os.environ | {f"TIDEGATE_CONTROLLER__{key}": value for key, value in quick.items()}
    with (
        (site.state / f"{name}.log").open("w") as log,
        subprocess.Popen(command, stderr=log, text=True, env=environment) as running,
    ):
        try:
            yield running
        finally:
            running.kill()
