"""The maintainer: looks after all tables in rounds, and says on the control bus how they are.

One thread does all of it. Between two steps it renews its turn and speaks, so both stop when the work hangs.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec
import pyarrow as pa
from deltalake.exceptions import DeltaError

from tidegate.bus.client import Bus
from tidegate.bus.documents import TABLES
from tidegate.bus.installation import load_installation
from tidegate.machine.memory import give_back
from tidegate.model.errors import BrokerUnavailableError, DamagedDocumentError, FencedError, TidegateError, UserError
from tidegate.model.tables import MaintenanceRun, TableHealth, TablesState
from tidegate.pipeline.completeness.checker import Completeness
from tidegate.pipeline.completeness.running import CompletenessThread
from tidegate.pipeline.maintenance.care import Care, UntrustedClockError
from tidegate.pipeline.maintenance.pacing import Pace, SteadyClock, Stopped, is_due
from tidegate.pipeline.maintenance.settings import MaintenanceSettings, check_retention
from tidegate.pipeline.maintenance.table import MaintainedTable
from tidegate.pipeline.maintenance.turn import Turn
from tidegate.pipeline.tables.damage import UNREADABLE
from tidegate.pipeline.tables.tables import SCHEMAS

Say = Callable[[str], None]
SPEAK_S = 2.0
LOOK_S = 0.5
TABLE_S_MAX = 60.0  # then the next table has its turn
RUNS_KEPT = 30
_NICE = 10
_BUS = "bus"
_COMPLETENESS = "completeness"


class Maintainer:
    """``run`` blocks until ``stop`` is called from a signal handler or another thread."""

    def __init__(
        self, state: Path, settings: MaintenanceSettings, say: Say, *, fsync: bool, identity_horizon_days: int
    ) -> None:
        if not settings.enabled:
            raise UserError("[maintenance] enabled is false: set it to true, or do not start a maintainer.")
        check_retention(settings, identity_horizon_days)
        installation = load_installation(state)
        self._settings, self._say, self._fsync = settings, say, fsync
        self._stopping = threading.Event()
        self._bus = Bus(installation.control_urls, name=settings.name)
        self._turn = Turn(self._bus, settings.name, settings.lease_s)
        self._pace = Pace(settings.share, self._between, self._stopping.wait)
        self._clock = SteadyClock()
        directory = Path(installation.tables)
        self._tables = [MaintainedTable(directory, name, fsync=fsync) for name in SCHEMAS]
        self._health: dict[str, TableHealth] = {}
        self._runs: deque[MaintenanceRun] = deque(maxlen=RUNS_KEPT)
        self._alarms: dict[str, str] = {}  # by what they are about
        self._running: str | None = None
        self._due_s = time.monotonic()
        self._vacuumed_s: dict[str, float] = {}  # by table, Unix time
        self._spoken_s = 0.0
        # It has its own turn, and its own thread: a hole is named within a minute, whatever is being merged meanwhile.
        self._completeness = CompletenessThread(
            Completeness(installation, name=settings.name, identity_horizon_days=identity_horizon_days)
        )

    def stop(self) -> None:
        self._stopping.set()

    def run(self) -> None:
        os.nice(_NICE)
        self._say(f"Maintainer {self._settings.name} is ready.")
        self._completeness.start()
        self._learn_what_was_done()
        try:
            while not self._stopping.is_set():
                if time.monotonic() >= self._due_s and self._take_turn():
                    with suppress(Stopped):
                        self._round()
                    self._running = None
                    self._turn.end()
                self._speak()
                self._stopping.wait(LOOK_S)
        finally:
            self._completeness.stop()
            self._bus.close()

    # -- between the steps

    def _take_turn(self) -> bool:
        try:
            return self._turn.take()
        except (BrokerUnavailableError, DamagedDocumentError) as error:
            self._alarm(_BUS, str(error))
            return False

    def _between(self) -> None:
        if self._stopping.is_set():
            raise Stopped
        try:
            self._turn.keep()
        except FencedError as error:
            self._say(str(error))
            raise Stopped from None
        self._speak()

    def _speak(self) -> None:
        now_s = time.monotonic()
        self._clock.steady_for(0)
        self._alarm(_COMPLETENESS, self._completeness.problem)
        if now_s - self._spoken_s < SPEAK_S or self._turn.holder not in (None, self._settings.name):
            return  # whose turn it is speaks for all
        self._spoken_s = now_s
        try:
            self._bus.put(TABLES, self._state(now_s))
        except BrokerUnavailableError as error:
            self._alarm(_BUS, str(error))
        else:
            self._alarm(_BUS, None)

    def _state(self, now_s: float) -> TablesState:
        return TablesState(
            maintainer=self._settings.name,
            at_s=time.time(),
            tables=dict(self._health),
            runs=tuple(self._runs),
            running=self._running,
            next_s=time.time() + max(0.0, self._due_s - now_s),
            alarms=tuple(self._alarms.values()),
        )

    def _alarm(self, about: str, sentence: str | None) -> None:
        if sentence is None:
            self._alarms.pop(about, None)
            return
        if self._alarms.get(about) != sentence:
            self._say(f"ALARM: {sentence}")
        self._alarms[about] = sentence

    # -- a round

    def _round(self) -> None:
        """Every table that is there; a problem with one does not keep the others waiting."""
        self._learn_what_was_done()
        self._due_s = time.monotonic() + self._settings.every_s
        for table in self._tables:
            if table.exists:
                self._running = table.name
                self._tend(table)

    def _learn_what_was_done(self) -> None:
        """By a process before this one, or by another maintainer: a start makes nothing due, and puts nothing off."""
        try:
            before = self._bus.get(TABLES)
        except (BrokerUnavailableError, DamagedDocumentError):
            return  # then all is due
        if before is not None:
            self._health = {**before.tables, **self._health}
            for name, health in before.tables.items():
                if health.vacuumed_s is not None:
                    self._vacuumed_s[name] = max(health.vacuumed_s, self._vacuumed_s.get(name, 0.0))
            if not self._runs:
                self._runs.extend(before.runs)

    def _tend(self, table: MaintainedTable) -> None:
        care, at_s, started_s = Care(table, self._settings, self._pace, self._fsync), time.time(), time.monotonic()
        problem, alarm = None, None
        self._pace.begin()
        table.begin()
        try:
            self._work(care, started_s)
        except FencedError as error:
            problem = str(error)
            self._say(problem)  # no alarm: whoever has the table now looks after it
        except (TidegateError, DeltaError, *UNREADABLE, pa.ArrowException) as error:
            problem = alarm = f"The table {table.name} could not be looked after: {_first_line(error)}"
        self._alarm(table.name, alarm)
        self._alarm(f"{table.name} damage", table.damage.sentence)
        self._runs.append(care.done.run(table.name, at_s, round(time.monotonic() - started_s, 3), problem))
        give_back()  # it waits far longer than it works

    def _work(self, care: Care, started_s: float) -> None:
        self._pace.hurry = care.log_entries() > self._settings.log_entries_max
        care.shorten_log()
        trusted = self._clock.steady_for(self._settings.vacuum_after_h * 3_600)
        if trusted:
            self._retain(care)
            # Before the merges, which may fail for lack of the room that this makes.
            self._vacuum(care)
        self._note(care)
        while care.compact(started_s + TABLE_S_MAX):
            self._note(care)
            if time.monotonic() > started_s + TABLE_S_MAX:
                self._due_s = time.monotonic()  # there is more to do: the next round begins at once
                break
        self._note(care)
        care.check_merges()

    def _retain(self, care: Care) -> None:
        about = f"{care.table.name} clock"
        try:
            care.check_clock()
            care.retain()
            self._alarm(about, None)
        except UntrustedClockError as error:
            self._alarm(about, str(error))

    def _vacuum(self, care: Care) -> None:
        name, now_s = care.table.name, time.time()
        if is_due(self._vacuumed_s.get(name), now_s, self._settings.vacuum_every_s):
            care.vacuum()
            self._vacuumed_s[name] = now_s

    def _note(self, care: Care) -> None:
        """How the table is now, and whether that is too much for rests."""
        name, settings = care.table.name, self._settings
        health = msgspec.structs.replace(care.health(), vacuumed_s=self._vacuumed_s.get(name))
        self._health[name] = health
        excess = [
            f"{found:,} {what} where [maintenance] {setting} allows {most:,}"
            for found, what, setting, most in (
                (health.active_files, "active files", "active_files_max", settings.active_files_max),
                (health.log_entries, "log entries", "log_entries_max", settings.log_entries_max),
            )
            if found > most
        ]
        self._pace.hurry = bool(excess)
        told = (
            f"The table {name} has {' and '.join(excess)}: commits get slower until the maintainer has caught up; if "
        )
        told += "that lasts, let nodes commit less often ([node] commit_ms), or keep fewer days."
        self._alarm(f"{name} size", told if excess else None)


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
