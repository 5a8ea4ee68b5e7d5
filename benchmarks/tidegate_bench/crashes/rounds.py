"""One round: devices send, faults come, and when they are over everything has to be as if nothing had been."""

import subprocess
import sys
import threading
import time
from typing import Any

import msgspec

from tidegate.model.errors import TidegateError
from tidegate_bench.crashes import faults, records
from tidegate_bench.crashes.alarms import Heard
from tidegate_bench.crashes.brokers_health import await_health
from tidegate_bench.crashes.damage import Outcome
from tidegate_bench.crashes.devices import GO, PAUSE, PREFIX
from tidegate_bench.crashes.judging import Book, Findings
from tidegate_bench.crashes.needs import Need, need_of
from tidegate_bench.crashes.oracle import Row
from tidegate_bench.crashes.records import Known
from tidegate_bench.crashes.schedule import NODES, Fault, Plan
from tidegate_bench.crashes.site import Site

MOVE_S_MAX = 120.0
SETTLE_S_MAX = 120.0
HEAL_S_MAX = 120.0
ALARM_S_MAX = 60.0
FAULT_S_MAX = 180.0
# How long everything goes well before the devices pause.
CALM_S = 3.0
LOOK_S = 0.25
# What a set-back store may have lost may also just be late.
QUIET_S = 6.0
SENTENCES_MAX = 60


class _Doing(threading.Thread):
    """A fault on its way, and what it did."""

    def __init__(self, site: Site, fault: Fault, began_s: float) -> None:
        super().__init__(name=fault.kind, daemon=True)
        self.fault = fault
        self.outcome: Outcome | None = None
        self.error: BaseException | None = None
        self._site, self._began_s = site, began_s

    def run(self) -> None:
        time.sleep(max(0.0, self._began_s + self.fault.at_s - time.monotonic()))
        try:
            self.outcome = faults.commit(self._site, self.fault)
        except BaseException as error:  # told by the round, which waits for it
            self.error = error


class Round:
    """``play`` it once."""

    def __init__(self, site: Site, plan: Plan, book: Book) -> None:
        self._site, self._plan, self._book = site, plan, book
        self._began_s = time.monotonic()

    def play(self) -> dict[str, Any]:
        """Everything from which the checks follow."""
        site = self._site
        before = (site.refused_commits(), site.ears.repeats())
        site.ears.begin_round()
        site.spread()
        site.devices.tell(GO)
        done = self._disturb()
        windows = [one.outcome.window for one in done if one.outcome is not None and one.outcome.window is not None]
        ended_s = time.monotonic()
        moved_s, stuck = self._await_moves(ended_s)
        calm_s = max(0.0, CALM_S - (time.monotonic() - ended_s))
        time.sleep(calm_s)
        # Once is not enough: a batch that was under way may be the last one.
        stuck |= self._await_moves(ended_s + CALM_S)[1]
        site.devices.tell(PAUSE)
        summary = self._summary()
        found = self._settled(Findings(windows=tuple(windows)))
        needs = [need_of(one.fault, one.outcome) for one in done if one.outcome is not None]
        unnamed = self._await_alarms(found, needs)
        self._book.close(found)
        heard = site.ears.heard()
        return {
            "faults": [_told(one, heard) for one in done],
            "moves": msgspec.to_builtins(self._plan.moves),
            "devices": summary,
            **found.row(),
            "unnamed": len(unnamed),
            "gaps": sorted(site.ears.named().slices),
            "holes_missing": site.ears.named().missing,
            "missing": found.missing,
            "moved_s": moved_s,
            "wedged": len(stuck) + (not summary),
            "silent": len(unnamed) + sum(need.sentence(heard) is None for need in needs if need.pattern),
            "refused_commits": site.refused_commits() - before[0],
            "repeats": site.ears.repeats() - before[1],
            "rejected": self._book.newly_rejected(site.stored.rejected(PREFIX)),
            "unrecovered": self._recover(),
            "healed_s": await_health(site.chain.installation.monitor_urls, HEAL_S_MAX),
            "broken": site.broken,
            "alarms": [f"{one.source}: {one.sentence}" for one in heard[:SENTENCES_MAX]],
        }

    # -- faults

    def _disturb(self) -> list[_Doing]:
        doing = [_Doing(self._site, fault, self._began_s) for fault in self._plan.faults]
        for one in doing:
            one.start()
        for move in self._plan.moves:
            time.sleep(max(0.0, self._began_s + move.at_s - time.monotonic()))
            self._move(move.slice)
        for one in doing:
            one.join(FAULT_S_MAX)
            if one.error is not None:
                raise TidegateError(f"The fault {one.fault.kind} could not be done: {one.error!r}")
        return doing

    def _move(self, slice_: int) -> None:
        """While the bus is away nobody can ask for a move."""
        try:
            owner = self._site.owner(slice_)
            self._site.move(slice_, next(name for name in NODES if name != owner))
        except TidegateError:
            return

    # -- afterwards

    def _await_moves(self, ended_s: float) -> tuple[list[float | None], set[int]]:
        """How long after the faults each slice committed again, and those that did not in time."""
        site = self._site
        start = site.stored.positions()
        moved: dict[int, float] = {}
        while len(moved) < len(start) and time.monotonic() < ended_s + MOVE_S_MAX and site.broken is None:
            for slice_, (now, before) in enumerate(zip(site.stored.positions(), start, strict=True)):
                if now != before:
                    moved.setdefault(slice_, round(time.monotonic() - ended_s, 1))
            time.sleep(LOOK_S)
        return [moved.get(slice_) for slice_ in range(len(start))], set(range(len(start))) - set(moved)

    def _summary(self) -> dict[str, Any]:
        """What the devices say, once everything is acknowledged; nothing where that takes too long."""
        try:
            return self._book.newly_sent(self._site.devices.answer(SETTLE_S_MAX))
        except TidegateError:
            return {}

    def _evidence(self) -> tuple[Known, list[Row], list[Row]]:
        """What the devices know, and afterwards what the tables have."""
        known = records.read(self._site.records)
        return known, self._site.stored.readings(), self._site.stored.means()

    def _settled(self, found: Findings) -> Findings:
        """What is missing when no more comes, or when the time is up."""
        deadline_s = time.monotonic() + SETTLE_S_MAX
        changed_s = time.monotonic()
        while True:
            before, found = found, self._book.look(*self._evidence(), found)
            now_s = time.monotonic()
            if found.missing != before.missing:
                changed_s = now_s
            is_late = bool(found.lost or found.wrong_means)
            is_over = not is_late and (not found.excused or now_s - changed_s > QUIET_S)
            if is_over or now_s > deadline_s or self._site.broken is not None:
                return found
            time.sleep(1.0)

    def _await_alarms(self, found: Findings, needs: list[Need]) -> list[Any]:
        """Until all is named that has to be, or the minute is over; what was not named."""
        deadline_s = time.monotonic() + ALARM_S_MAX
        while True:
            unnamed = found.unnamed(self._site.ears.named())
            heard = self._site.ears.heard()
            missing = [need for need in needs if need.pattern and need.sentence(heard) is None]
            if not (unnamed or missing) or time.monotonic() > deadline_s:
                return unnamed
            time.sleep(1.0)

    def _recover(self) -> str:
        """What a person does about gaps that were announced; why that did not work."""
        if not self._site.ears.named().slices:
            return ""
        command = [
            sys.executable,
            "-m",
            "tidegate.cli.main",
            "recover",
            "--close-all",
            "--state",
            str(self._site.state),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        return "" if done.returncode == 0 else f"{done.stdout}{done.stderr}".strip()


def _told(one: _Doing, heard: list[Heard]) -> dict[str, Any]:
    told = {**msgspec.to_builtins(one.fault), **(msgspec.to_builtins(one.outcome) if one.outcome else {"hit": False})}
    if one.outcome is not None:
        need = need_of(one.fault, one.outcome)
        told["alarm"] = need.sentence(heard) if need.pattern else None
    return told
