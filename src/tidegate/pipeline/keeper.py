"""The thread that keeps a node's place: its lease, what it says of itself, and slices that nobody works on."""

import threading
import time
from collections.abc import Callable

from tidegate.bus.assignments import Assignments
from tidegate.bus.client import Bus
from tidegate.bus.documents import NODE_LEASES, PROGRESS
from tidegate.bus.leases import Lease
from tidegate.model.errors import BrokerUnavailableError, DamagedDocumentError, UserError
from tidegate.model.installation import Installation
from tidegate.pipeline.progress import ProgressBoard
from tidegate.pipeline.settings import NodeSettings

Say = Callable[[str], None]
KEEPER = "keeper"


class Keeper(threading.Thread):
    """Holds the node's lease, takes over from the dead, publishes progress."""

    def __init__(
        self,
        installation: Installation,
        settings: NodeSettings,
        board: ProgressBoard,
        say: Say,
        lease_lost: threading.Event,
    ) -> None:
        super().__init__(name="keeper", daemon=True)
        self._installation = installation
        self._settings = settings
        self._board = board
        self._say = say
        self._lease_lost = lease_lost
        self._bus = Bus(installation.control_urls, name=f"{settings.name}-keeper")
        self._assignments = Assignments(self._bus, installation.slices)
        self._lease = Lease(self._bus, NODE_LEASES, settings.name, settings.lease_s)
        self._ending = threading.Event()

    def take_lease(self) -> None:
        """Hold the lease before anything is read. What a predecessor of that name said of itself ends before that."""
        self._publish()
        if not self._lease.keep():
            raise UserError(f"Another node named {self._settings.name} has just started: choose another --name.")

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
        last_renewal = 0.0
        while not self._ending.is_set():
            try:
                if time.monotonic() - last_renewal >= self._settings.lease_s / 4:
                    last_renewal = time.monotonic()
                    if not self._lease.keep():
                        return
                    for change in self._assignments.adopt_orphans():
                        self._say(f"Slice {change.slice} goes to node {change.taker} because {change.reason}.")
                self._board.alarm(KEEPER, None)
                self._publish()
            except (BrokerUnavailableError, DamagedDocumentError) as error:
                self._board.alarm(KEEPER, str(error))
            self._ending.wait(0.1)

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
