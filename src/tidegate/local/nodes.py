"""How many processing nodes run on this machine: as many as somebody wants, within what the operator allows.

A missing node is started at once. One that is too many keeps working until its slices have left it, which the
controller sees to; after a while it is asked to stop all the same, because a node that stops gives its slices up in
good order. Nothing here waits: ``follow`` does what is due and returns.
"""

import time
from collections.abc import Callable
from contextlib import suppress

from tidegate.bus.assignments import Assignments
from tidegate.bus.client import Bus
from tidegate.bus.documents import SCALE
from tidegate.local.parts import Part, Say
from tidegate.local.process import STOP_S_MAX
from tidegate.model.errors import BrokerUnavailableError, DamagedDocumentError
from tidegate.model.scaling import Scale

LEAVE_S_MAX = 15.0


class _Leaving:
    def __init__(self, now_s: float) -> None:
        self.since_s = now_s
        self.asked_s: float | None = None


class Nodes:
    """``node-1`` to ``node-<count>`` among the parts of a chain; no two of them are ever started under one name."""

    def __init__(
        self,
        parts: dict[str, Part],
        start: Callable[[str], None],
        bus: Bus,
        say: Say,
        *,
        at_start: int,
        most: int,
    ) -> None:
        self._parts, self._start, self._bus, self._say = parts, start, bus, say
        self._assignments = Assignments(bus)
        self._at_start, self._most = at_start, most
        self._asked = self._wanted = at_start
        self._leaving: dict[str, _Leaving] = {}

    def announce(self) -> None:
        """The number that the operator starts with is what is wanted now, whatever was wanted before."""
        if self._at_start:
            self._bus.put(SCALE, Scale(nodes_wanted=self._at_start))
        else:
            self._bus.delete(SCALE)

    def is_leaving(self, name: str) -> bool:
        return name in self._leaving

    def follow(self) -> None:
        """Start and stop what is due. While the bus is away, what was wanted last is still wanted."""
        with suppress(BrokerUnavailableError, DamagedDocumentError):  # sensors raise the alarm
            self._read_wanted()
        names = [f"node-{number}" for number in range(1, self._wanted + 1)]
        for name in names:
            if name not in self._parts:
                self._say(f"{name} is started because {self._why()}.")
                self._start(name)
            elif name in self._leaving and self._leaving[name].asked_s is None:
                del self._leaving[name]
                self._say(f"{name} stays because {self._why()}.")
        for name in [name for name in self._parts if name.startswith("node-") and name not in names]:
            if name not in self._leaving:
                self._leaving[name] = _Leaving(time.monotonic())
                self._say(f"{name} is to stop when its slices have left because {self._why()}.")
        for name, leaving in list(self._leaving.items()):
            self._see_off(self._parts[name], leaving)

    def _read_wanted(self) -> None:
        scale = self._bus.get(SCALE)
        asked = scale.nodes_wanted if scale is not None else self._at_start
        if asked > self._most and asked != self._asked:
            self._say(f"{asked} processing nodes are wanted, but only {self._most} may run here: raise --nodes-max.")
        self._asked, self._wanted = asked, min(asked, self._most)

    def _why(self) -> str:
        return f"{self._wanted} processing {'node is' if self._wanted == 1 else 'nodes are'} wanted"

    def _see_off(self, part: Part, leaving: _Leaving) -> None:
        now_s = time.monotonic()
        if leaving.asked_s is None:
            if now_s < leaving.since_s + LEAVE_S_MAX and self._has_slices(part.name):
                return
            leaving.asked_s = now_s
            part.ask_to_stop()
        late = now_s > leaving.asked_s + STOP_S_MAX
        if late:
            part.end_group()
        if late or part.is_gone:
            del self._leaving[part.name], self._parts[part.name]
            self._say(f"{part.name} has stopped.")

    def _has_slices(self, name: str) -> bool:
        """Yes where that cannot be known: time will tell."""
        try:
            assignment = self._assignments.current()
            return bool(assignment.owned_by(name) or assignment.promised_to(name))
        except (BrokerUnavailableError, DamagedDocumentError):
            return True
