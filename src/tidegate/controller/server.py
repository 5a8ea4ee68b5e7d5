"""The controller: measures, shows, and acts while it leads.

Leader and follower measure alike, so a follower's window is full when it has to lead. Blocking connections live in
threads of their own: a broker that hangs delays a measurement, never the lease.
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from tidegate.brokers.opening import open_brokers
from tidegate.controller.acting import Acting, NotLeadingError
from tidegate.controller.sensors import Sensors
from tidegate.controller.settings import ControllerSettings
from tidegate.loop.machine import Outcome
from tidegate.model.classes import DeviceClass
from tidegate.model.decisions import Decision, Mode
from tidegate.model.errors import BrokerUnavailableError, DamagedDocumentError
from tidegate.model.installation import Installation
from tidegate.model.observations import BrokerState, Observation
from tidegate.model.view import DECISIONS_SHOWN, ChainStates, Sample, View

SHOWN_S = 600.0
PAGES_EVERY_S = 1.0
LEASE_LOOKS = 8  # per lease: how often it is renewed, or looked at by who waits for it

Answer = TypeVar("Answer")


class Controller:
    """``run`` until told to stop; ``view`` and ``set_mode`` are for the web, from the same event loop."""

    def __init__(
        self,
        installation: Installation,
        settings: ControllerSettings,
        *,
        classes: Sequence[DeviceClass] = (),
        title: str = "tidegate",
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._installation, self._settings, self._title, self._say = installation, settings, title, say
        self._loop = settings.control_loop(classes)
        self._acting = Acting(installation.control_urls, settings.name, settings.lease_s)
        self._broker_port = open_brokers(installation, name=f"{settings.name}-pages")
        self._sensors = Sensors(installation, name=settings.name)
        self._bus_thread = ThreadPoolExecutor(1, "bus")
        self._sensor_thread = ThreadPoolExecutor(1, "sensors")
        self._page_thread = ThreadPoolExecutor(1, "pages")
        self._leads = False
        self._mode = Mode()
        self._brokers: tuple[BrokerState, ...] = ()
        self._observation: Observation | None = None
        self._samples: deque[Sample] = deque(maxlen=round(SHOWN_S / settings.period_s))
        self._decisions: tuple[Decision, ...] = ()
        self._problem: str | None = None

    # -- for people

    def view(self) -> View:
        seen = self._observation
        alarms = seen.alarms if seen else ()
        return View(
            name=self._title,
            controller=self._settings.name,
            leader=self._acting.lease.leader,
            mode=self._mode,
            samples=tuple(self._samples),
            decisions=self._decisions,
            chain=ChainStates(
                gateways=seen.gateways, brokers=seen.brokers, nodes=seen.nodes, slices=seen.slices, tables=seen.tables
            )
            if seen
            else ChainStates(),
            alarms=(*alarms, self._problem) if self._problem else alarms,
            completeness=seen.completeness if seen else None,
        )

    async def set_mode(self, mode: Mode) -> None:
        """What the operator allows, for every controller of the installation."""
        await self._on_bus(lambda: self._acting.write_mode(mode))
        self._mode = mode

    # -- running

    async def run(self, stop: asyncio.Event) -> None:
        try:
            await self._on_bus(self._acting.audit.create)
            async with asyncio.TaskGroup() as tasks:
                settings = self._settings
                tasks.create_task(_repeat(self._keep_lease, settings.lease_s / LEASE_LOOKS, stop))
                tasks.create_task(_repeat(self._read_pages, PAGES_EVERY_S, stop))
                tasks.create_task(_repeat(self._round, settings.period_s, stop))
        finally:
            await self._on_bus(self._acting.close)
            await self._on_sensors(self._sensors.close)
            self._broker_port.close()
            for thread in (self._bus_thread, self._sensor_thread, self._page_thread):
                thread.shutdown(wait=False, cancel_futures=True)

    async def _keep_lease(self) -> None:
        try:
            await self._on_bus(self._acting.lease.keep)
        except (BrokerUnavailableError, DamagedDocumentError) as error:
            self._problem = str(error)

    async def _read_pages(self) -> None:
        loop = asyncio.get_running_loop()
        self._brokers = await loop.run_in_executor(self._page_thread, self._broker_port.states)

    async def _round(self) -> None:
        """Measure; then act as the leader, or follow the one that is."""
        self._observation = await self._on_sensors(lambda: self._sensors.observe(self._brokers))
        if self._observation.at_s == 0:
            return  # nothing has been measured since the start; the alarms say why
        try:
            self._mode = await self._on_bus(self._acting.mode)
            if self._acting.lease.may_act:
                await self._lead(self._observation)
            else:
                await self._follow(self._observation)
            self._problem = None
        except NotLeadingError:
            return
        except (BrokerUnavailableError, DamagedDocumentError) as error:
            self._problem = str(error)
            self._show(self._loop.watch(self._observation))

    async def _lead(self, observation: Observation) -> None:
        if not self._leads:
            self._loop.resume(await self._on_bus(self._acting.state))
            self._decisions = await self._on_bus(self._acting.decisions)
            self._leads = True
            self._say(f"Controller {self._settings.name} leads.")
        before = self._loop.state
        outcome = self._loop.tick(observation, self._mode)
        try:
            await self._carry_out(outcome)
        except BaseException:
            # What was not carried out was not decided: the next round proposes it again.
            self._loop.resume(before)
            raise
        self._show(outcome.sample)

    async def _carry_out(self, outcome: Outcome) -> None:
        state = self._loop.state
        written = await self._on_bus(lambda: self._acting.carry_out(outcome.proposals, state))
        self._decisions = (*self._decisions, *written)[-DECISIONS_SHOWN:]
        for decision in written:
            self._say(decision.sentence if decision.acted else f"{decision.sentence} (Shadow mode: not carried out.)")
        await self._on_sensors(self._keep_bus_tidy)

    def _keep_bus_tidy(self) -> None:
        self._sensors.store_offsets()
        for name in self._sensors.forget_gone(time.monotonic()):
            self._say(f"Node {name} has been gone for a day: what it said of itself is forgotten.")

    async def _follow(self, observation: Observation) -> None:
        if self._leads:
            self._leads = False
            self._say(f"Controller {self._settings.name} follows.")
        self._loop.resume(await self._on_bus(self._acting.state))
        self._decisions = await self._on_bus(self._acting.decisions)
        self._show(self._loop.watch(observation))

    def _show(self, sample: Sample) -> None:
        if not self._samples or sample.at_s != self._samples[-1].at_s:
            self._samples.append(sample)

    # -- threads

    async def _on_bus(self, call: Callable[[], Answer]) -> Answer:
        return await asyncio.get_running_loop().run_in_executor(self._bus_thread, call)

    async def _on_sensors(self, call: Callable[[], Answer]) -> Answer:
        return await asyncio.get_running_loop().run_in_executor(self._sensor_thread, call)


async def _repeat(step: Callable[[], Awaitable[None]], every_s: float, stop: asyncio.Event) -> None:
    """Once per period, on the beat; a round that takes longer than its period is followed by the next at once."""
    due_s = time.monotonic()
    while not stop.is_set():
        await step()
        due_s = max(due_s + every_s, time.monotonic())
        try:
            async with asyncio.timeout(due_s - time.monotonic()):
                await stop.wait()
        except TimeoutError:
            continue
