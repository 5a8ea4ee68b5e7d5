"""What the rest of the system needs of its brokers, whichever they are.

A broker is a place that MQTT clients are sent to: it has an address, credentials, a load and a health. That is enough
for routing, health checks and hand-over. Some brokers also keep what they acknowledged in a **log in slices**, from
which processing nodes read; one that does not is a valid broker all the same, and its ``log`` is None.

An adapter is a folder or file beside this one that implements ``Adapter``; ``opening`` finds it by its kind.
"""

from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from tidegate.brokers.settings import BrokerSettings
from tidegate.model.backlog import Backlog, DiskState
from tidegate.model.installation import Installation, LogAddress
from tidegate.model.observations import BrokerState

if TYPE_CHECKING:
    import pyarrow as pa  # slow to import, and only readers of a log need it


class Credentials(NamedTuple):
    user: str
    password: str


class Rows(NamedTuple):
    """Consecutive messages of one slice, as columns: topic, arrival in nanoseconds, payload."""

    slice: int
    first: int  # offset of the first
    topics: "pa.Array"
    stamps_ns: "pa.Array"
    payloads: "pa.Array"


class SliceRange(NamedTuple):
    """The messages of a slice behind ``after``, up to and with ``last``."""

    slice: int
    after: int
    last: int


class Span(NamedTuple):
    """The sequences of the first and the last message that a slice holds; first is last + 1 where it holds none.

    ``bytes`` is what all of them take together; 0 where the broker does not say.
    """

    first: int
    last: int
    bytes: int = 0

    @property
    def message_bytes(self) -> float:
        """What a message takes on average, at least 1: any one of them may take much more."""
        return max(1.0, self.bytes / max(1, self.last - self.first + 1))


class SlicedLog(Protocol):
    """What was acknowledged, in slices with dense sequences. Belongs to one thread."""

    def backlog(self, committed: Mapping[int, int]) -> Backlog:
        """What waits between acknowledgement and tables, given how far the tables are."""

    def slice_of(self, device: str) -> int:
        """Where all readings of a device are."""

    def spans(self, slices: Sequence[int]) -> dict[int, Span]:
        """What each of these slices holds, as its leader says."""

    def read(self, wanted: Sequence[SliceRange]) -> Generator[Rows, None, None]:
        """Every message of every range, in order within a slice. Raises ``SequenceGapError`` rather than skip one."""

    def next_sequence(self, slice_: int, sequence: int) -> int | None:
        """The lowest sequence from this one on that any broker has a message of; None where there is none.

        Raises ``BrokerUnavailableError`` where a broker that might have it does not answer.
        """

    def purge(self, committed: Mapping[int, int]) -> dict[int, int]:
        """Delete what is below the committed sequence of each slice; how many messages went."""

    def close(self) -> None:
        """Let go of connections; the next call opens them anew."""


class Brokers(Protocol):
    """The brokers of an installation. Belongs to one thread."""

    @property
    def addresses(self) -> tuple[tuple[str, int], ...]:
        """Where MQTT clients are sent, one per broker."""

    @property
    def credentials(self) -> Credentials:
        """What Tidegate's own clients, and devices without credentials of their own, connect with."""

    @property
    def log(self) -> SlicedLog | None:
        """What they acknowledged; None where they keep no log."""

    def states(self) -> tuple[BrokerState, ...]:
        """Load and health of each, asked now. Takes up to a timeout per broker that hangs."""

    def close(self) -> None:
        """Let go of connections."""


class DiskGuard(Protocol):
    def check(self) -> DiskState:
        """Measure, stop or resume acknowledging where that is due, and say what is. Call it every second or so."""

    def close(self) -> None:
        """Let go of its connection."""


class SessionQuotas(Protocol):
    def check(self) -> str | None:
        """End absent sessions that keep more than they may; a sentence about those that went lately, or None.

        Call it every second or so.
        """

    def close(self) -> None:
        """Let go of its connection."""


class EmbeddedServers(Protocol):
    """Brokers and control bus that this process starts and ends."""

    installation: Installation | None  # once they run

    def start(self) -> Installation:
        """Everything up, and devices let in."""

    def supervise(self) -> tuple[str, ...]:
        """Start again what has ended, without waiting for it; a sentence for each server that is not well.

        Call it every second or so, from the thread that started them."""

    def stop(self) -> None:
        """In good order, safe to call twice."""

    def disk_guard(self) -> DiskGuard | None:
        """What keeps their disk from filling up; None if they store nothing. It has a connection of its own."""

    def session_quotas(self) -> SessionQuotas | None:
        """What keeps absent sessions within bounds; None if they keep nothing. It has a connection of its own."""


class Adapter(Protocol):
    """What a kind of broker has to offer."""

    def open_brokers(self, installation: Installation, *, name: str, timeout_s: float) -> Brokers: ...

    def open_log(self, address: LogAddress, *, name: str, timeout_s: float) -> SlicedLog: ...

    def embedded(self, state_directory: Path, settings: BrokerSettings) -> EmbeddedServers:
        """Servers of this kind as children of this process. UserError where only others start them."""
