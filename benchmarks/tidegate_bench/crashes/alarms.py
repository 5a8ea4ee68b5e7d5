"""What the installation says of itself, heard where a person would: the controller's API, and ``tidegate up``."""

import http.client
import json
import threading
import time
from collections.abc import Iterable
from contextlib import suppress

import msgspec

from tidegate.bus.client import Bus
from tidegate.bus.documents import COMPLETENESS, GAPS, PROGRESS
from tidegate.model.errors import TidegateError
from tidegate.model.installation import Installation
from tidegate_bench.crashes.oracle import Named

LISTEN_S = 1.0
PATIENCE_S = 2.0


class Heard(msgspec.Struct, frozen=True, kw_only=True):
    """A sentence, and when it was first and last said."""

    source: str
    sentence: str
    first_s: float
    last_s: float


class Ears(threading.Thread):
    """Hears what is said during a round, and how many repeats the nodes drop in all."""

    def __init__(self, installation: Installation, nodes: Iterable[str]) -> None:
        super().__init__(name="ears", daemon=True)
        self._installation, self._nodes = installation, tuple(nodes)
        self._bus = Bus(installation.control_urls, name="bench-ears", timeout_s=PATIENCE_S)
        self._ending = threading.Event()
        self._lock = threading.Lock()
        self._heard: dict[tuple[str, str], Heard] = {}
        self._repeats: dict[tuple[str, int], int] = {}  # by node and process
        self._slices: set[int] = set()  # whose log was found set back
        self._holes: tuple[tuple[str, int, int, int], ...] = ()
        self._missing = 0

    def run(self) -> None:
        while not self._ending.wait(LISTEN_S):
            with suppress(OSError, http.client.HTTPException, ValueError):
                self._listen_to_controller()
            with suppress(TidegateError):
                self._read_bus()
        self._bus.close()

    def stop(self) -> None:
        self._ending.set()
        self.join(10)

    def hear(self, source: str, sentence: str) -> None:
        now_s = time.time()
        with self._lock:
            before = self._heard.get((source, sentence))
            first_s = now_s if before is None else before.first_s
            self._heard[source, sentence] = Heard(source=source, sentence=sentence, first_s=first_s, last_s=now_s)

    def begin_round(self) -> None:
        """What was said before is said anew if it still holds."""
        with self._lock:
            self._heard.clear()
            self._slices.clear()

    def heard(self) -> list[Heard]:
        with self._lock:
            return sorted(self._heard.values(), key=lambda one: one.first_s)

    def named(self) -> Named:
        with self._lock:
            return Named(slices=frozenset(self._slices), ranges=self._holes, missing=self._missing)

    def repeats(self) -> int:
        """How many repeats the nodes have dropped, over all their restarts."""
        with self._lock:
            return sum(self._repeats.values())

    def _listen_to_controller(self) -> None:
        assert self._installation.web is not None
        connection = http.client.HTTPConnection(*self._installation.web, timeout=PATIENCE_S)
        try:
            connection.request("GET", "/api/view", headers={"authorization": f"Bearer {self._installation.token}"})
            view = json.loads(connection.getresponse().read())
        finally:
            connection.close()
        for sentence in view.get("alarms", ()):
            self.hear("controller", sentence)

    def _read_bus(self) -> None:
        gaps = self._bus.get(GAPS)
        for gap in gaps.open if gaps is not None else ():
            self.hear("gaps", gap.sentence)
            with self._lock:
                self._slices.add(gap.slice)
        book = self._bus.get(COMPLETENESS)
        if book is not None:
            for sentence in book.alarms:
                self.hear("completeness", sentence)
            with self._lock:
                self._holes = tuple((hole.device, hole.boot, hole.low, hole.high) for hole in book.holes)
                self._missing = sum(hour.missing for hour in book.hours)
        for node in self._nodes:
            said = self._bus.get(PROGRESS, node)
            if said is None:
                continue
            for told in (said.problem, said.alarm):
                if told:
                    self.hear(node, told)
            with self._lock:
                key = (node, said.pid)
                self._repeats[key] = max(self._repeats.get(key, 0), said.totals.repeats)
