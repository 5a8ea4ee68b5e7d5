"""What the chain looks like now: one ``Observation`` per call, from the brokers' log and the control bus.

A sensor that fails gives an alarm sentence and its last value, never a zero. The counters and their time go together:
while one of them cannot be read, the observation keeps the time of the last complete measurement, and who computes
rates from it sees that nothing new was measured.
"""

import time
from collections.abc import Callable, Mapping
from typing import TypeVar

import msgspec

from tidegate.brokers.opening import open_brokers
from tidegate.brokers.port import SlicedLog
from tidegate.bus.assignments import Assignments
from tidegate.bus.client import Bus
from tidegate.bus.documents import (
    COMPLETENESS,
    GAPS,
    GATEWAYS,
    OFFSETS,
    PROGRESS,
    ROUTES,
    SCALE,
    TABLES,
    UP_ALARMS,
    Document,
)
from tidegate.control.slicing.presence import remembered, without_stopped
from tidegate.control.slicing.spreading import bound_for
from tidegate.control.slicing.transfer import Assignment
from tidegate.controller.clock import LoopClock
from tidegate.controller.forgetting import EVERY_S, forget_gone
from tidegate.controller.gateways_seen import GatewaysSeen
from tidegate.controller.slice_states import slice_states
from tidegate.model.backlog import Backlog
from tidegate.model.errors import DamagedDocumentError, TidegateError
from tidegate.model.gaps import Gaps
from tidegate.model.installation import Installation
from tidegate.model.ledger import CompletenessState
from tidegate.model.observations import BrokerState, GatewayState, NodeState, Observation
from tidegate.model.positions import sequence_of
from tidegate.model.progress import NodeProgress
from tidegate.model.routes import Routes
from tidegate.model.tables import SILENT_S, TablesState
from tidegate.model.view import duration

Value = TypeVar("Value")
# So many looks in a row have to see the same contradiction before it is told.
LOOKS_MIN = 3
# A check that has said nothing for so long has ended; its steps take seconds.
UNCHECKED_S_MAX = 120.0
# A gateway reports every ten seconds what it acknowledged.
UNREPORTED_S_MAX = 60


class Sensors:
    """Belongs to one thread, like its connections."""

    def __init__(
        self, installation: Installation, *, name: str, timeout_s: float = 2.0, clock: LoopClock | None = None
    ) -> None:
        self._clock = clock or LoopClock()
        self._gateways = GatewaysSeen()
        self._brokers = open_brokers(installation, name=f"{name}-sensors", timeout_s=timeout_s)
        self._bus = Bus(installation.control_urls, timeout_s=timeout_s, name=f"{name}-sensors")
        self._assignments = Assignments(self._bus, installation.slices)
        self._assignment = self._assignments.without_owners()
        self._last = Observation(at_s=0.0, arrived=0, committed=0, head_age_s=0.0, devices=0)
        self._offsets: dict[int, int] = {}
        self._offsets_stored: dict[int, int] | None = None
        self._forget_at_s = 0.0
        self._wanted = 0
        self._alarms: list[str] = []
        self._standing: dict[str, int] = {}  # what log and tables say against each other, and for how many looks
        self._completeness: CompletenessState | None = None
        self._checked = (0, 0.0)  # revision of the completeness document, and when it was seen first

    def close(self) -> None:
        self._brokers.close()
        self._bus.close()

    def observe(self, brokers: tuple[BrokerState, ...]) -> Observation:
        self._alarms = []
        last = self._last
        nodes = self._tried(self._read_nodes, "What the tables have committed")
        log = self._brokers.log
        backlog = None
        if log is not None and nodes is not None:
            backlog = self._tried(lambda: self._measure(log), "What waits in the brokers")
        wanted = self._tried(self._read_wanted, "How many processing nodes are wanted") if nodes is not None else None
        self._wanted = self._wanted if wanted is None else wanted
        nodes = last.nodes if nodes is None else without_stopped(nodes, self._wanted)
        gateways = self._tried(self._read_gateways, "How many devices are connected")
        counted = last
        if backlog is not None:
            counted = self._counted(backlog, nodes)
        elif log is None and gateways is not None:
            counted = _handed_over(gateways, self._clock.now_s())
        gateways = last.gateways if gateways is None else gateways
        self._alarms += self._tried(self._read_gaps, "Whether the log has gaps") or ()
        routes = self._tried(self._read_routes, "Which brokers the gateways use")
        tables = self._tried(self._read_tables, "How the tables are")
        self._alarms += self._tried(lambda: self._bus.get(UP_ALARMS) or [], "What 'tidegate up' says") or []
        if log is not None:
            self._tried(self._read_completeness, "Whether the tables have all that was acknowledged")
        self._alarms += [f"Broker {broker.name}: {broker.problem}" for broker in brokers if broker.problem]
        self._last = msgspec.structs.replace(
            counted,
            devices=sum(gateway.publishers for gateway in gateways),
            gateways=gateways,
            brokers=brokers,
            nodes=nodes,
            slices=slice_states(self._assignment, backlog, self._offsets) if log is not None else (),
            tables=last.tables if tables is None else tables[0],
            starting=last.starting if wanted is None else max(0, wanted - sum(node.is_working for node in nodes)),
            alarms=tuple(self._alarms),
            routes=last.routes if routes is None else routes,
            completeness=self._completeness,
        )
        return self._last

    def store_offsets(self) -> None:
        """Keep what is known for the next controller: a node's document forgets slices it gave away."""
        if self._offsets != self._offsets_stored:
            self._bus.put(OFFSETS, self._offsets)
            self._offsets_stored = dict(self._offsets)

    def forget_gone(self, now_s: float) -> list[str]:
        """The leader's, after it has stored the offsets: forget nodes that are gone for good, every now and then."""
        if now_s < self._forget_at_s:
            return []
        self._forget_at_s = now_s + EVERY_S
        return forget_gone(self._bus, self._offsets_stored or {})

    def _tried(self, read: Callable[[], Value], what: str) -> Value | None:
        try:
            return read()
        except (TidegateError, OSError, LookupError, ValueError) as error:
            self._alarms.append(f"{what} is not known at the moment, the last value stands: {_one_line(error)}")
            return None

    def _readable(self, document: Document[Value], name: str) -> Value | None:
        """One of several documents: that one cannot be read must not hide the others."""
        try:
            return self._bus.get(document, name)
        except DamagedDocumentError as error:
            self._alarms.append(str(error))
            return None

    # -- nodes

    def _read_nodes(self) -> tuple[NodeState, ...]:
        if self._offsets_stored is None:
            self._offsets_stored = self._read_offsets()
            self._raise_offsets(self._offsets_stored)
        alive = set(self._assignments.alive())
        slices = bound_for(self._assigned(), alive)
        found: dict[str, NodeProgress] = {}
        for name in sorted(alive | set(self._bus.names(PROGRESS))):
            found[name] = self._readable(PROGRESS, name) or NodeProgress(node=name, ready=False)
            self._raise_offsets({number: one.committed for number, one in found[name].slices.items()})
        spoke_at_s = {name: progress.at_s for name, progress in found.items() if not progress.left}
        names = remembered(alive, spoke_at_s, time.time())
        nodes = tuple(_node(name, found[name], slices.get(name)) for name in names)
        if self._brokers.log is not None:
            self._judge([node for node in nodes if node.alive])
            # A node that ended because of a problem is asked why, until it is back or forgotten.
            gone = [found[node.name] for node in nodes if not node.alive]
            self._alarms += [f"Node {one.node}: {one.problem}" for one in gone if one.problem]
        return nodes

    def _assigned(self) -> Assignment:
        """Who has which slice; as it was where that cannot be read, because what nodes do is known without it."""
        try:
            self._assignment = self._assignments.current()
        except DamagedDocumentError as error:
            self._alarms.append(str(error))
        return self._assignment

    def _read_offsets(self) -> dict[int, int]:
        """What controllers knew before; what cannot be read is learnt again from the nodes."""
        try:
            return self._bus.get(OFFSETS) or {}
        except DamagedDocumentError as error:
            self._alarms.append(str(error))
            return {}

    def _read_gaps(self) -> tuple[str, ...]:
        gaps = self._bus.get(GAPS) or Gaps()
        return tuple(f"{gap.sentence} See 'tidegate recover'." for gap in gaps.open)

    def _read_wanted(self) -> int:
        """How many processing nodes somebody asked for; 0 where nobody did."""
        scale = self._bus.get(SCALE)
        return scale.nodes_wanted if scale is not None else 0

    def _raise_offsets(self, found: Mapping[int, int]) -> None:
        for number, committed in found.items():
            self._offsets[number] = max(committed, self._offsets.get(number, 0))

    def _judge(self, nodes: list[NodeState]) -> None:
        if not nodes:
            self._alarms.append("No processing node runs: start one with 'tidegate node'; readings wait meanwhile.")
        if not self._offsets:
            self._alarms.append(
                "No processing node has committed anything yet: all that is in the log counts as waiting."
            )
        self._alarms += [f"Node {node.name}: {node.problem}" for node in nodes if node.problem]

    # -- tables

    def _read_tables(self) -> tuple[TablesState | None]:
        """What the maintainer says; that it has never said anything is an answer, too."""
        said = self._bus.get(TABLES)
        if said is not None:
            silent_s = time.time() - said.at_s
            if silent_s > SILENT_S:
                self._alarms.append(
                    f"No maintainer has said anything for {duration(silent_s)}: the tables' logs and files grow; "
                    "see that 'tidegate up' runs."
                )
            else:
                self._alarms += said.alarms
        return (said,)

    # -- queue and gateways

    def _measure(self, log: SlicedLog) -> Backlog:
        backlog = log.backlog({slice_: sequence_of(place) for slice_, place in self._offsets.items()})
        self._alarms += (*backlog.alarms, *backlog.warnings)
        # The same sentence has the same numbers: whatever moves is no contradiction.
        self._standing = {said: self._standing.get(said, 0) + 1 for said in backlog.contradictions}
        self._alarms += [said for said, looks in self._standing.items() if looks >= LOOKS_MIN]
        return backlog

    def _counted(self, backlog: Backlog, nodes: tuple[NodeState, ...]) -> Observation:
        """A message between two streams may be counted twice for a moment; a counter must not fall for that."""
        stored = sum(one.last_sequence for one in backlog.slices)
        committed = sum(min(one.committed, one.last_sequence) for one in backlog.slices)
        arrived = stored + backlog.upstream_waiting
        if stored >= self._last.committed:
            arrived = max(arrived, self._last.arrived)
        return Observation(
            at_s=self._clock.now_s(),
            arrived=arrived,
            committed=committed,
            head_age_s=backlog.head_age_s,
            devices=self._last.devices,
            committed_at_s=max(
                (self._clock.from_unix(node.committed_at_s) for node in nodes if node.alive and node.committed_at_s),
                default=0.0,
            ),
        )

    def _read_routes(self) -> Routes:
        return self._bus.get(ROUTES) or Routes(brokers=())

    def _read_completeness(self) -> None:
        """A check that ended without a word is missed by this clock, not by comparing two."""
        stored = self._bus.stored(COMPLETENESS)
        self._completeness = None if stored is None else stored.value
        if stored is None:
            return
        now_s = time.monotonic()
        if stored.revision != self._checked[0]:
            self._checked = (stored.revision, now_s)
        state = stored.value
        self._alarms += state.alarms
        if now_s - self._checked[1] > UNCHECKED_S_MAX and not state.left:
            self._alarms.append(
                f"What was acknowledged is no longer compared with the tables: {state.checker} did it last; see its "
                "log, or start 'tidegate ledger watch'."
            )

    def _read_gateways(self) -> tuple[GatewayState, ...]:
        found = (self._readable(GATEWAYS, name) for name in self._bus.names(GATEWAYS))
        reporting = (gateway for gateway in found if gateway is not None)
        gateways, silent = self._gateways.update(reporting, time.monotonic())
        self._alarms += silent
        self._alarms += [
            f"Gateway {one.name} has not reported for more than a minute what it acknowledged: if any of it is lost, "
            "nobody notices. See the gateway's log and the journal LEDGER on the control bus."
            for one in gateways
            if one.ledger.unreported_s > UNREPORTED_S_MAX
        ]
        return gateways


def _handed_over(gateways: tuple[GatewayState, ...], now_s: float) -> Observation:
    """Of brokers without a log: what gateways handed over is done, as far as anybody can see."""
    messages = sum(gateway.acknowledged for gateway in gateways)
    return Observation(at_s=now_s, arrived=messages, committed=messages, head_age_s=0.0, devices=0)


def _node(name: str, progress: NodeProgress, slices: tuple[int, ...] | None) -> NodeState:
    """``slices`` is None of a node that has gone."""
    cost_us = sum(one.rows * one.cost_us_per_row for one in progress.slices.values())
    return NodeState(
        name=name,
        alive=slices is not None,
        slices=slices or (),
        rows=progress.totals.rows,
        cost_s=cost_us / 1e6,
        committed_at_s=progress.committed_at_s,
        limit_rows=progress.limit.rows,
        limit_s=progress.limit.seconds,
        full=progress.full,
        ready=progress.ready,
        problem=progress.problem or progress.alarm,
        batches=progress.batches,
        rejects=progress.rejects,
        rejected_devices=progress.rejected_devices,
    )


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if text.endswith(".") else f"{text}."
