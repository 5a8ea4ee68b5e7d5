"""What sensors saw at one moment, as values. Everything a policy decides is decided from these."""

import msgspec

from tidegate.model.ledger import CompletenessState, LedgerCounts
from tidegate.model.progress import Batch
from tidegate.model.routes import Routes
from tidegate.model.tables import TablesState


class ClassState(msgspec.Struct, frozen=True, kw_only=True):
    """The devices of one class. ``publishes`` only grows while who counts it runs."""

    devices: int
    publishes: int


class HeldClient(msgspec.Struct, frozen=True, kw_only=True):
    """A client whose publishes wait in a gateway, and why."""

    client_id: str
    reason: str  # in words: "its own rate", "the topics a/#"
    publishes: int
    waiting_s: float  # how long the oldest of them has waited


class ProcessState(msgspec.Struct, frozen=True, kw_only=True):
    """One process of a gateway. ``publishes`` only grows while it runs."""

    number: int
    pid: int
    connections: int
    publishes: int
    cpu_share: float  # of one core
    late_s: float  # how late its event loop was lately
    draining: bool = False


class GatewayState(msgspec.Struct, frozen=True, kw_only=True):
    """One gateway. Counters only grow while it runs; who wants a rate takes differences."""

    name: str
    address: str  # host:port for devices
    measured_at_s: float
    connections: int
    publishes: int  # readings that went on to a broker
    publishers: int = 0  # connections that have published, and devices that came by HTTP within minutes
    acknowledged: int  # of those, how many were acknowledged
    advised: int  # advice messages sent
    bytes_in: int = 0
    bytes_out: int = 0
    refused: dict[str, int] = {}  # by reason, in words
    brokers: dict[str, int] = {}  # connections per broker
    held: int = 0  # publishes that wait in the gateway
    held_clients: dict[str, int] = {}  # how many clients are held, by reason, in words
    most_held: tuple[HeldClient, ...] = ()  # those that have waited longest
    held_total: int = 0  # publishes that ever had to wait; a counter
    dropped: dict[str, int] = {}  # publishes at QoS 0 that were not passed on, by reason; counters
    admitting: int = 0  # clients that wait for their turn to be connected
    versions: dict[str, int] = {}  # connections per version of MQTT: "3.1", "3.1.1", "5", "5 on 3.1.1"
    overload: int = 0  # 0 to 10: how late the gateway itself is
    processes: tuple[ProcessState, ...] = ()
    replaced: int = 0  # processes that died and were replaced; a counter
    classes: dict[str, ClassState] = {}  # devices whose class is known, by its name
    ledger: LedgerCounts = LedgerCounts()
    left: bool = False  # it has stopped, and says so


class NodeState(msgspec.Struct, frozen=True, kw_only=True):
    """One processing node, as its progress document says. One that has gone says what it said last."""

    name: str
    alive: bool  # it holds its lease
    slices: tuple[int, ...]  # that it works on, or that are on their way to it
    rows: int  # committed since it started
    cost_s: float = 0.0  # busy time over the same span, 0 where unknown
    committed_at_s: float = 0.0  # when it committed last (Unix time), 0 where it has not
    # Work at its limit: batches that left more waiting than they could take, or service without a pause. Rows over
    # seconds is what the node can do; a batch that was small because little waited says nothing about that.
    limit_rows: float = 0.0
    limit_s: float = 0.0
    full: bool = False  # the batch under way has as many rows as one may have
    ready: bool = True  # it has finished a batch; before that it only warms up
    problem: str | None = None
    batches: tuple[Batch, ...] = ()  # the newest ones, oldest first
    rejects: dict[str, int] = {}  # readings that the side table has, by reason; counters
    rejected_devices: tuple[tuple[str, str, int], ...] = ()  # those with most of them: device, reason, how many

    @property
    def is_working(self) -> bool:
        return self.alive and self.ready


class SliceState(msgspec.Struct, frozen=True, kw_only=True):
    """One slice: whose it is, and how far the tables have it. None is what nobody could say at that moment."""

    number: int
    owner: str | None = None
    epoch: int = 0
    taker: str | None = None  # of one that is on its way
    stored: int | None = None  # messages that its log ever had; a counter
    waiting: int | None = None  # of those, how many the tables lack
    age_s: float | None = None  # of the oldest that waits; 0 where none does


class BrokerState(msgspec.Struct, frozen=True, kw_only=True):
    """One broker, as its monitoring page says."""

    name: str
    address: str
    healthy: bool
    connections: int | None = None  # None where its page does not say
    problem: str | None = None


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """The chain at one moment. ``arrived`` and ``committed`` are counters since the installation began."""

    at_s: float  # Unix time of the measurement
    arrived: int  # messages that brokers acknowledged
    committed: int  # of those, how many the tables have
    head_age_s: float  # age of the oldest message that the tables lack; 0 where none waits
    devices: int  # that publish, at all gateways
    committed_at_s: float = 0.0  # when ``committed`` last grew, as the nodes say; 0 where they do not
    queued: int | None = None  # what waits, where a broker says it; else it follows from the counters
    starting: int = 0  # processing nodes that were started and do not work yet
    gateways: tuple[GatewayState, ...] = ()
    brokers: tuple[BrokerState, ...] = ()
    nodes: tuple[NodeState, ...] = ()
    slices: tuple[SliceState, ...] = ()
    tables: TablesState | None = None  # None where no maintainer has ever said how they are
    alarms: tuple[str, ...] = ()
    completeness: CompletenessState | None = None  # None where nobody checks
    routes: Routes | None = None  # that gateways follow; without brokers where nobody has said any, None if unknown

    @property
    def waiting(self) -> int:
        return max(0, self.arrived - self.committed) if self.queued is None else self.queued

    @property
    def held(self) -> int:
        return sum(gateway.held for gateway in self.gateways)

    @property
    def classes(self) -> dict[str, ClassState]:
        """Every class that a gateway has devices of, summed over the gateways."""
        found: dict[str, ClassState] = {}
        for gateway in self.gateways:
            for name, one in gateway.classes.items():
                before = found.get(name, ClassState(devices=0, publishes=0))
                found[name] = ClassState(
                    devices=before.devices + one.devices, publishes=before.publishes + one.publishes
                )
        return found
