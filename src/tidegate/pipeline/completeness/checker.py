"""What a process calls: one check of an installation at a time, under a lease; what it found goes to the bus."""

from pathlib import Path

from tidegate.brokers.opening import address_of_log, open_log
from tidegate.bus.client import Bus
from tidegate.bus.documents import COMPLETENESS, COMPLETENESS_LEASE, LEDGER
from tidegate.bus.journals import JournalReader
from tidegate.bus.leases import Lease
from tidegate.model.errors import BrokerUnavailableError
from tidegate.model.installation import Installation
from tidegate.model.ledger import CompletenessState
from tidegate.pipeline.completeness.rounds import Round, Sources
from tidegate.pipeline.completeness.stored import StoredReadings
from tidegate.pipeline.tables.tables import Tables

STEP_S = 5.0
# A step that looks a lot up may take its time; longer than this, and another may begin.
LEASE_S = 60.0


class Completeness:
    """``step`` whenever there is time, as often as you like. Belongs to one thread."""

    def __init__(self, installation: Installation, *, name: str, identity_horizon_days: int = 30) -> None:
        self.state: CompletenessState | None = None  # as of the last step
        self._name = name
        directory = Path(installation.tables)
        self._bus = Bus(installation.control_urls, name=f"{name}-completeness")
        self._lease = Lease(self._bus, COMPLETENESS_LEASE, name, LEASE_S)
        self._log = open_log(address_of_log(installation), name=f"{name}-completeness")
        self._sources = Sources(
            JournalReader(self._bus, LEDGER),
            self._log,
            StoredReadings(Tables(directory), installation.slices, identity_horizon_days),
            directory,
        )
        self._round: Round | None = None  # while the lease is ours
        self._due_s = 0.0

    @property
    def holder(self) -> str | None:
        """Who checks, as far as is known here."""
        return self._lease.holder

    def step(self, now_s: float) -> bool:
        """One look, if one is due and nobody else looks; whether there was one. ``now_s`` is Unix time.

        Raises ``BrokerUnavailableError`` where the control bus is away. Anything else that goes wrong is said in the
        document, and tried again.
        """
        if now_s < self._due_s <= now_s + STEP_S:  # later than that: the clock was set back
            return False
        self._due_s = now_s + STEP_S
        if not self._lease.keep():
            self._round = None
            return False
        if self._round is None:
            self._round = Round(self._sources, now_s)
        self._round.step(now_s)
        self.state = self._round.said(self._name, now_s)
        self._bus.put(COMPLETENESS, self.state)
        return True

    def stop(self, now_s: float, *, left: bool = False) -> None:
        """``left``: a person ends it, and nobody need wonder why it stands still."""
        try:
            if self._round is not None and self._lease.renew():
                self._round.save()
                if left:
                    self._bus.put(COMPLETENESS, self._round.said(self._name, now_s, left=True))
                self._lease.end()
        except (BrokerUnavailableError, OSError):
            pass  # the lease ends by itself, and what is not saved is found out again
        self._round = None
        self._bus.close()
        self._log.close()
