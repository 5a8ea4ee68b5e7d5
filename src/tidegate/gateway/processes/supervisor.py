"""A gateway: the processes that serve it, kept running behind listeners that stay open while processes come and go.

A process that dies is replaced, and what it counted is kept. An upgrade starts new processes behind the same
listeners, with the code that is on disk by then; when all of them serve, the old ones accept no more clients and send
theirs away at a pace. Draining is the same without new ones.
"""

import asyncio
import contextlib
import signal
import time
from collections.abc import Callable, Sequence

from tidegate.bus.watching import Watcher
from tidegate.gateway.identity.settings import IdentitySettings
from tidegate.gateway.processes.crew import Crew
from tidegate.gateway.processes.process import Process, pause_s
from tidegate.gateway.settings import GatewaySettings
from tidegate.gateway.shared.classes import Classes
from tidegate.gateway.shared.reporting import ProcessLoads, report
from tidegate.gateway.shared.summing import state_of
from tidegate.machine.tasks import end
from tidegate.model.classes import DEFAULT_CLASSES, DeviceClass
from tidegate.model.errors import TidegateError, UserError
from tidegate.model.installation import Installation
from tidegate.model.observations import GatewayState
from tidegate.mqtt.filters import compile_filter

# How often it looks while something changes, and while nothing does: then a process that ends wakes it.
LOOK_S, CALM_S = 0.05, 0.5
# How long new processes may take until they serve, and ended ones until they are gone.
START_S_MAX = 30.0
STOP_S_MAX = 1.5

Say = Callable[[str], None]


class Supervisor:
    """``run`` returns when the gateway has ended. ``upgrade`` and ``drain`` may be called at any moment."""

    def __init__(
        self,
        installation: Installation,
        settings: GatewaySettings,
        say: Say,
        classes: Sequence[DeviceClass] = DEFAULT_CLASSES,
        identity: IdentitySettings | None = None,
    ) -> None:
        # What is wrong with them is said once, and before anything starts.
        Classes(classes)
        _check_limits(settings)
        self._urls = installation.control_urls
        self._settings = settings
        self._classes = classes
        self._say = say
        self._crew = Crew(installation, settings, classes, identity or IdentitySettings())
        self._loads = ProcessLoads(self._crew.shared)
        self._mqtt = "{}:{}".format(*self._crew.mqtt_address)
        http = self._crew.http_address
        self._http = f"HTTP {http[0]}:{http[1]}" if http[1] else "no HTTP"
        self._due_s: dict[int, float] = {}  # listener sets that lack a process, and when one starts there
        self._pauses_s: dict[int, float] = {}
        self._upgrade_asked = False
        self._new: list[Process] = []  # those of an upgrade, until all of them serve
        self._problem = ""  # why one of these does not
        self._serves = False
        self._ends = False  # nothing is started any more
        self._replaced = 0
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """A process may have ended, or it is time to stop."""
        self._woken.set()

    def upgrade(self) -> None:
        self._upgrade_asked = True
        self.wake()

    def drain(self) -> None:
        """Send all clients away at a pace, then end. Another gateway may take the ports meanwhile."""
        if self._ends:
            return
        self._ends = True
        self._say(f"Gateway {self._settings.name} sends its clients away, for {self._settings.drain_s:g} s.")
        self._crew.close_listeners()
        for process in self._crew.processes:
            self._crew.send_away(process)
        self.wake()

    async def run(self, stopping: asyncio.Event) -> None:
        watcher = Watcher(self._urls, name=f"tidegate-{self._settings.name}")
        watcher.start()
        reporting = asyncio.create_task(report(watcher, self._settings.name, self.state))
        try:
            for listener_set in range(self._settings.processes):
                self._crew.start(listener_set, strict=True)
            while not stopping.is_set() and (self._crew.processes or not self._ends):
                self._look()
                if reporting.done():
                    reporting.result()
                is_calm = self._serves and not (self._ends or self._new or self._due_s)
                self._woken.clear()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(CALM_S if is_calm else LOOK_S):
                        await self._woken.wait()
        finally:
            await end(reporting)
            await self._stop()
            await watcher.stop()

    def state(self) -> GatewayState:
        return state_of(
            self._crew.shared,
            name=self._settings.name,
            address=self._mqtt,
            measured_at_s=time.time(),
            class_names=[one.name for one in self._classes],
            processes=self._loads.states(),
            replaced=self._replaced,
        )

    def _look(self) -> None:
        for process in [process for process in self._crew.processes if process.ended]:
            self._bury(process)
        if self._ends:
            return
        if self._new:
            self._continue_upgrade()
        elif self._upgrade_asked:
            self._begin_upgrade()
        now_s = time.monotonic()
        for listener_set in [each for each, due_s in self._due_s.items() if due_s <= now_s]:
            del self._due_s[listener_set]
            self._crew.start(listener_set, strict=False)
        if self._serves:
            self._crew.tell_unattended()
        elif all(self._crew.is_kept(each) for each in range(self._settings.processes)):
            self._serves = True
            self._say(f"Gateway {self._settings.name} is ready at {self._mqtt} ({self._http}).")

    async def _stop(self) -> None:
        for process in self._crew.processes:
            process.tell(signal.SIGTERM)
        deadline_s = time.monotonic() + STOP_S_MAX
        while time.monotonic() < deadline_s and not all(process.ended for process in self._crew.processes):
            await asyncio.sleep(LOOK_S)
        for process in self._crew.processes:
            process.kill()
            process.last_words()
        self._crew.close()

    # -- one that is gone

    def _bury(self, process: Process) -> None:
        """Keep what it counted, and replace it if it was not told to go."""
        was_ready = self._crew.is_ready(process)
        self._crew.bury(process)
        words = process.last_words()
        if process in self._new:
            self._problem = words
        elif not process.leaves and not self._ends:
            if not self._serves and not was_ready:
                raise TidegateError(f"Gateway {self._settings.name} cannot start: {words}.")
            self._replace(process, words)

    def _replace(self, process: Process, words: str) -> None:
        gone = f"Process {process.number} of gateway {self._settings.name} is gone: {words}."
        if self._new:
            self._say(f"{gone} A new one starts anyway.")
            return
        listener_set = process.listener_set
        pause = self._pauses_s[listener_set] = pause_s(process.lived_s, self._pauses_s.get(listener_set))
        self._due_s[listener_set] = time.monotonic() + pause
        self._replaced += 1
        self._say(f"{gone} Another takes its place {f'in {pause:g} s' if pause else 'now'}.")

    # -- new ones for old

    def _begin_upgrade(self) -> None:
        if not self._serves or any(process.leaves for process in self._crew.processes):
            return  # one thing after the other
        self._upgrade_asked, self._problem = False, ""
        self._due_s.clear()
        self._say(f"Gateway {self._settings.name} starts new processes.")
        self._new = [self._crew.start(each, strict=True) for each in range(self._settings.processes)]

    def _continue_upgrade(self) -> None:
        if self._problem or self._new[0].lived_s > START_S_MAX:
            self._give_up_upgrade()
        elif all(self._crew.is_ready(process) for process in self._new):
            new, self._new = self._new, []
            self._say(f"The new ones serve: the old ones send their clients away, for {self._settings.drain_s:g} s.")
            for process in self._crew.processes:
                if process not in new:
                    self._crew.send_away(process)

    def _give_up_upgrade(self) -> None:
        problem = self._problem or f"they do not serve after {START_S_MAX:g} s"
        self._say(f"The new processes of gateway {self._settings.name} cannot start, the old ones stay: {problem}.")
        for process in self._crew.processes:
            if process in self._new:
                process.leaves = True
                process.tell(signal.SIGTERM)
        self._new = []
        for listener_set in range(self._settings.processes):
            if not self._crew.is_kept(listener_set):
                self._due_s[listener_set] = time.monotonic()


def _check_limits(settings: GatewaySettings) -> None:
    for number, limit in enumerate(settings.limits, start=1):
        for topic in limit.topics:
            try:
                compile_filter(topic)
            except ValueError as error:
                place = f"The gateway's setting limits, number {number}"
                raise UserError(f"{place}, has the topic filter {topic!r:.80}: {error}.") from None
