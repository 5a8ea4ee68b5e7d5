"""The controller: measures, shows, and acts while it leads.

Leader and follower measure alike, so a follower's window is full when it has to lead. Blocking connections live in
threads of their own: a broker that hangs delays a measurement, never the lease.
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import msgspec

from tidegate.brokers.opening import open_brokers
from tidegate.controller.acting import Acting, NotLeadingError, refusals
from tidegate.controller.clock import LoopClock
from tidegate.controller.devices import Devices
from tidegate.controller.problems import Problems
from tidegate.controller.replaying import BuiltFrom
from tidegate.controller.ruling import Ruling
from tidegate.controller.sensors import Sensors
from tidegate.controller.settings import ControllerSettings
from tidegate.loop.machine import Outcome
from tidegate.loop.rounds import Round
from tidegate.loop.rules import RuleSet
from tidegate.loop.state import LoopState
from tidegate.model.classes import DeviceClass
from tidegate.model.decisions import Applied, Apply, Decision, Mode
from tidegate.model.errors import BrokerUnavailableError, DamagedDocumentError, TooLargeError
from tidegate.model.installation import Installation
from tidegate.model.observations import BrokerState, Observation
from tidegate.model.view import DECISIONS_SHOWN, ChainStates, Sample, View

SHOWN_S = 600.0
PAGES_EVERY_S = 1.0
DEVICES_EVERY_S = 10.0
WITHHELD_SHOWN = 20
TOLD_S = 300.0  # for so long an alarm tells what is over already
LEASE_LOOKS = 8  # per lease: how often it is renewed, or looked at by who waits for it

Answer = TypeVar("Answer")


class Controller:
    """``run`` until told to stop; ``view``, ``set_mode`` and ``devices`` are for the web, from the same event loop."""

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
        self._problems = Problems(say)
        self._ruling = Ruling(self._loop, settings, classes, say, self._problems)
        self._built_from = msgspec.to_builtins(BuiltFrom(controller=settings, classes=tuple(classes)))
        self._acting = Acting(installation.control_urls, settings.name, settings.lease_s)
        self._broker_port = open_brokers(installation, name=f"{settings.name}-pages")
        self._clock = LoopClock()
        self._sensors = Sensors(installation, name=settings.name, clock=self._clock)
        self.devices = Devices(installation, settings.name)
        self._bus_thread = ThreadPoolExecutor(1, "bus")
        self._sensor_thread = ThreadPoolExecutor(1, "sensors")
        self._page_thread = ThreadPoolExecutor(1, "pages")
        self._term: int | None = None  # of the lease, while it leads
        self._mode = Mode()
        self._brokers: tuple[BrokerState, ...] = ()
        self._observation: Observation | None = None
        self._samples: deque[Sample] = deque(maxlen=round(SHOWN_S / settings.period_s))
        self._decisions: tuple[Decision, ...] = ()
        self._withheld: tuple[str, ...] = ()

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
            alarms=(*alarms, *self._ruling.alarms(self._loop.state), *self.devices.alarms, *self._problems.alarms()),
            completeness=seen.completeness if seen else None,
            rules=self._ruling.view(self._loop.state),
            withheld=self._withheld,
            identity=self.devices.state,
        )

    async def set_mode(self, changes: Mapping[str, object]) -> Mode:
        """What the operator allows from now on, for every controller of the installation: only what he has changed, as
        what he looked at may be old."""
        self._mode = await self._on_bus(lambda: self._acting.change_mode(changes, self._say))
        return self._mode

    # -- running

    async def run(self, stop: asyncio.Event) -> None:
        try:
            for sentence in await self._on_bus(self._acting.audit.create):
                self._say(sentence)
            self._say(f"Controller {self._settings.name} is ready.")
            async with asyncio.TaskGroup() as tasks:
                settings = self._settings
                tasks.create_task(_repeat(self._keep_lease, settings.lease_s / LEASE_LOOKS, stop))
                tasks.create_task(_repeat(self._read_pages, PAGES_EVERY_S, stop))
                tasks.create_task(_repeat(self.devices.read, DEVICES_EVERY_S, stop))
                tasks.create_task(_repeat(self._round, settings.period_s, stop))
        finally:
            await self._on_bus(self._acting.close)
            await self._on_sensors(self._sensors.close)
            await self.devices.close()
            self._broker_port.close()
            for thread in (self._bus_thread, self._sensor_thread, self._page_thread):
                thread.shutdown(wait=False, cancel_futures=True)

    async def _keep_lease(self) -> None:
        try:
            await self._on_bus(self._acting.lease.keep)
            self._problems.end("lease")
        except (BrokerUnavailableError, DamagedDocumentError) as error:
            self._problems.begin("lease", f"Who leads is not known: {error}", cause=type(error).__name__)

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
            await self._read_rules()
            if self._acting.lease.may_act:
                await self._lead(self._observation)
            else:
                await self._follow(self._observation)
            self._problems.end("round")
        except NotLeadingError:
            self._term = None  # what others did meanwhile has to be read
        except (BrokerUnavailableError, DamagedDocumentError) as error:
            self._problems.begin("round", str(error), cause=type(error).__name__)
            self._show(self._loop.watch(self._observation))

    async def _lead(self, observation: Observation) -> None:
        term = self._acting.lease.term
        if term != self._term:
            if await self._take_up():
                return  # what was measured is of another time
            self._decisions = await self._on_bus(self._acting.decisions)
            self._ruling.notices = await self._on_bus(self._acting.notices)
            await self._on_bus(lambda: self._acting.lead_by(self._built_from))
            self._term = term
            self._say(f"Controller {self._settings.name} leads.")
        await self._on_bus(self._acting.check_state)
        await self._carry_out(self._mode)  # what the last round, or the last leader, could not
        before = self._loop.state
        decides = self._loop.is_ready and not self._mode.frozen
        word = await self._on_bus(self._acting.word) if decides else None
        mode = self._mode if word is None else word.mode(self._mode)
        outcome = self._loop.tick(observation, mode)
        self._withheld = tuple(one.sentence for one in outcome.withheld)[:WITHHELD_SHOWN]
        await self._keep_round(before, outcome, mode)
        if word is not None:
            await self._answer(word, outcome)
        await self._carry_out(mode)
        await self._tell()
        self._show(outcome.sample)
        await self._on_sensors(self._keep_bus_tidy)

    async def _carry_out(self, mode: Mode) -> None:
        """What is decided is written down before it is done: whoever takes over knows it, and decides nothing twice."""
        pending = self._loop.state.pending
        if pending:
            refused = refusals(pending, mode, self._clock.now_s())
            await self._keep()
            carried = await self._on_bus(lambda: self._acting.carry_out(pending, refused))
            self._loop.told(carried.results)
            self._decisions = (*self._decisions, *carried.written)[-DECISIONS_SHOWN:]
            for decision in carried.written:
                self._say(_told(decision))
            if carried.error is not None:
                raise carried.error
        await self._keep()

    async def _answer(self, word: Apply, outcome: Outcome) -> None:
        """Name the decisions that came of the operator's word. They are kept before: no other ones get their numbers,
        and whoever takes over says what becomes of them."""
        await self._keep()
        plans = tuple(one.plan for one in outcome.proposals if one.recorded)
        applied = Applied(plans=plans, measured=outcome.knowledge is not None)
        await self._on_bus(lambda: self._acting.answer(word, applied))

    async def _tell(self) -> None:
        """What is new is part of the state until everybody could hear it: whoever takes over tells it."""
        notices = self._loop.state.notices
        if notices:
            await self._on_bus(lambda: self._acting.tell(notices))
            self._ruling.noticed(notices)
            self._loop.noticed()
            await self._keep()

    async def _keep_round(self, before: LoopState, outcome: Outcome, mode: Mode) -> None:
        made = next((one for one in outcome.proposals if one.recorded), None)
        if made is None or outcome.knowledge is None:
            return
        followed = self._ruling.followed
        played = Round(
            at_s=time.time(),
            knowledge=outcome.knowledge,
            state=msgspec.structs.replace(before, notices=()),
            mode=mode,
            settings=self._built_from,
            rules=RuleSet() if followed is None else followed.rules,
            rules_at_s=0.0 if followed is None else followed.applied_at_s,
            knows_rules=self._loop.knows_rules,
        )
        try:
            await self._on_bus(lambda: self._acting.keep_round(made.round, played))
        except TooLargeError as error:
            sentence = f"Decision {made.plan} cannot be replayed: {error}"
            self._problems.begin("replay", sentence, lasts_s=TOLD_S)

    async def _keep(self) -> None:
        # With the time of now: whoever takes over reckons from it and from when the bus took it.
        state = msgspec.structs.replace(self._loop.state, at_s=self._clock.now_s())
        await self._on_bus(lambda: self._acting.keep(state))

    def _keep_bus_tidy(self) -> None:
        self._sensors.store_offsets()
        for name in self._sensors.forget_gone(time.monotonic()):
            self._say(f"Node {name} has been gone for a day: what it said of itself is forgotten.")

    async def _follow(self, observation: Observation) -> None:
        if self._term is not None:
            self._term = None
            self._say(f"Controller {self._settings.name} follows.")
        moved = await self._take_up()
        self._decisions = await self._on_bus(self._acting.decisions)
        if not moved:
            self._show(self._loop.watch(observation))

    async def _take_up(self) -> bool:
        """What the leader, or the last one, knew; and its time, where this one's is another: whether it was."""
        state = await self._on_bus(self._acting.state)
        if self._acting.damage is not None:
            self._problems.begin("loop", str(self._acting.damage), lasts_s=TOLD_S)
        self._loop.resume(state)
        moved = self._clock.not_before(state.at_s) or await self._set_back(state)
        if moved:
            self._loop.measure_anew()
        return moved

    async def _set_back(self, state: LoopState) -> bool:
        """A clock that is ahead would take for late what the last leader has only begun."""
        asked_s = self._clock.now_s()  # before the bus says its time: an answer that comes late makes nobody ahead
        now_s = await self._on_bus(lambda: self._acting.last_leaders_now_s(state))
        if now_s is None or not self._clock.set_back(asked_s - now_s):
            return False
        self._samples.clear()  # they are of a time that is yet to come
        self._say(f"The clock of {self._settings.name} was {asked_s - now_s:,.0f} s ahead of the last leader's.")
        return True

    async def _read_rules(self) -> None:
        """Rules that cannot be read leave those in place that are followed, and stop nothing else."""
        try:
            self._ruling.follow(await self._on_bus(self._acting.rules))
        except DamagedDocumentError as error:
            self._ruling.unreadable(str(error))

    def _show(self, sample: Sample) -> None:
        if not self._samples or sample.at_s != self._samples[-1].at_s:
            self._samples.append(sample)

    # -- threads

    async def _on_bus(self, call: Callable[[], Answer]) -> Answer:
        return await asyncio.get_running_loop().run_in_executor(self._bus_thread, call)

    async def _on_sensors(self, call: Callable[[], Answer]) -> Answer:
        return await asyncio.get_running_loop().run_in_executor(self._sensor_thread, call)


def _told(decision: Decision) -> str:
    if decision.acted:
        return decision.sentence
    return f"{decision.sentence} ({decision.not_done if decision.trouble else 'Shadow mode: not carried out.'})"


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
