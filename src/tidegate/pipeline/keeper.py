"""The thread that keeps a node's place: its lease, what it says of itself, and slices that nobody works on.

The lease stands for progress, not for this thread: when the query has hung for too long the node gives it up and ends.
The main thread may wait for the JVM for ever then, so it is ended from here.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Sequence

from tidegate.bus.assignments import Assignments
from tidegate.bus.client import Bus
from tidegate.bus.documents import NODE_LEASES, PROGRESS
from tidegate.bus.leases import Lease
from tidegate.machine.spawning import kill_descendants, paused_descendants
from tidegate.model.errors import BrokerUnavailableError, DamagedDocumentError, UserError
from tidegate.model.installation import Installation
from tidegate.pipeline.progress import ProgressBoard
from tidegate.pipeline.scratch import Scratch
from tidegate.pipeline.settings import NodeSettings

Say = Callable[[str], None]
KEEPER = "keeper"
# A lease runs out in whole seconds, a moment later.
LAPSE_S = 2.0
# Any status but that of a mistake: who started the node starts it again.
STALLED = os.EX_TEMPFAIL


class Keeper(threading.Thread):
    """Holds the node's lease, takes over from the dead, publishes progress."""

    def __init__(
        self,
        installation: Installation,
        settings: NodeSettings,
        board: ProgressBoard,
        say: Say,
        lease_lost: threading.Event,
        *,
        scratch: Callable[[], Scratch | None],
    ) -> None:
        """``scratch`` is the directory of the query that runs now, if one does."""
        super().__init__(name="keeper", daemon=True)
        self._installation = installation
        self._settings = settings
        self._board = board
        self._say = say
        self._lease_lost = lease_lost
        self._scratch = scratch
        self._bus = Bus(installation.control_urls, name=f"{settings.name}-keeper")
        self._assignments = Assignments(self._bus, installation.slices)
        self._lease = Lease(self._bus, NODE_LEASES, settings.name, settings.lease_s)
        self._ending = threading.Event()

    def take_lease(self) -> None:
        """Hold the lease before anything is read. What a predecessor of that name said of itself ends before that.

        A lease that is another's may be a dead predecessor's: right after a control bus was killed one was seen there
        that had run out before. It runs out once more; one that does not belongs to a node that runs.
        """
        self._publish()
        deadline_s = time.monotonic() + self._settings.lease_s + LAPSE_S
        while not self._lease.keep():
            if time.monotonic() > deadline_s:
                raise UserError(f"Another node named {self._settings.name} has just started: choose another --name.")
            time.sleep(0.1)

    def _publish(self) -> None:
        progress = self._board.progress(time.time())
        if progress is not None:
            self._bus.put(PROGRESS, progress, self._settings.name)

    def run(self) -> None:
        """Until told to end. If anything else ends this, the node must not go on without a lease."""
        try:
            self._keep()
        finally:
            if not self._ending.is_set():
                self._lease_lost.set()

    def _keep(self) -> None:
        renewed_s = 0.0
        while not self._ending.is_set():
            scratch = self._scratch()
            if scratch is not None and scratch.has_new_part():
                self._board.worked()
            if scratch is not None:
                self._board.planned(*scratch.batch_planned(), self._settings.rows_per_batch_max)
            stalled_s = self._board.stalled_s(time.monotonic(), self._rows_planned)
            if stalled_s is not None:
                self._give_up(stalled_s)
            try:
                if time.monotonic() - renewed_s >= self._settings.lease_s / 4:
                    renewed_s = time.monotonic()
                    if not self._renew():
                        return
                self._publish()
            except BrokerUnavailableError as error:
                self._board.alarm(KEEPER, str(error))
            self._ending.wait(0.1)

    def _renew(self) -> bool:
        """Whether the lease is still this node's. A damaged document is told, and keeps the node from nothing else."""
        try:
            if not self._lease.keep():
                return False
            for change in self._assignments.adopt_orphans():
                self._say(f"Slice {change.slice} goes to node {change.taker} because {change.reason}.")
        except DamagedDocumentError as error:
            self._board.alarm(KEEPER, str(error))
        else:
            self._board.alarm(KEEPER, None)
        return True

    def _rows_planned(self) -> int:
        scratch = self._scratch()
        return 0 if scratch is None else scratch.rows_planned()

    def _give_up(self, stalled_s: float) -> None:
        """End the process and all below it, so that others take its slices and a fresh one takes its place."""
        problem = stall_sentence(self._settings.name, stalled_s, paused_descendants())
        try:
            logging.disable()  # other threads would fill the log with how they lost their JVM
            kill_descendants()
            self._board.failed(problem)
            if (scratch := self._scratch()) is not None:
                scratch.remove()
            self._publish()
            self._lease.end()
        finally:  # whatever else fails: where the bus is away, the lease ends by itself
            self._say(problem)
            os._exit(STALLED)

    def stop(self, *, in_good_order: bool) -> None:
        self._ending.set()
        if self.is_alive():
            self.join(timeout=10)
        if in_good_order:
            try:
                self._assignments.change(lambda before: before.vacate(self._settings.name))
                self._bus.put(PROGRESS, self._board.farewell(time.time()), self._settings.name)
                self._lease.end()
            except (BrokerUnavailableError, DamagedDocumentError):
                pass  # the lease ends by itself
        self._bus.close()


def stall_sentence(node: str, stalled_s: float, paused: Sequence[str]) -> str:
    who = f" (paused: {', '.join(paused)})" if paused else ""
    return (
        f"The query of node {node} has given no sign of life for {stalled_s:.0f} s{who}: the node ends and others take "
        f"its slices; 'tidegate up' starts it again, or 'tidegate node --name {node}' where it was started by hand."
    )
