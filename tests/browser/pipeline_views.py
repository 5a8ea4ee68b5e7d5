"""What the pipeline of a moving installation says: batches, slices, tables and refused readings.

Three kinds: ``pipeline`` (two nodes, one slice that lags and one on its way, tables that are looked after),
``pipeline-empty`` (a new installation: nobody runs, nothing is stored) and ``pipeline-broken`` (whatever can be wrong).
"""

from datetime import UTC, datetime

import msgspec

from tidegate.model.observations import NodeState, SliceState
from tidegate.model.progress import BATCHES_SAID, Batch
from tidegate.model.tables import MaintenanceRun, TableHealth, TablesState
from tidegate.model.view import ChainStates, Sample, View

SLICES = 8
LAGGING, MOVING, FREE = 3, 6, 5
NODE_PER_S = 250.0


def with_pipeline(view: View, kind: str) -> View:
    """The same installation, with what its pipeline says."""
    if kind == "pipeline-empty":
        slices = tuple(SliceState(number=number, stored=0, waiting=0, age_s=0.0) for number in range(SLICES))
        return msgspec.structs.replace(view, chain=ChainStates(brokers=view.chain.brokers, slices=slices))
    broken = kind == "pipeline-broken"
    chain = msgspec.structs.replace(
        view.chain,
        nodes=tuple(_node(node, place, view.samples, broken) for place, node in enumerate(view.chain.nodes)),
        slices=tuple(_slice(number, view.samples, broken) for number in range(SLICES)),
        tables=_tables(view.samples[-1].at_s, broken),
    )
    return msgspec.structs.replace(view, chain=chain)


def _node(node: NodeState, place: int, samples: tuple[Sample, ...], broken: bool) -> NodeState:
    batches = tuple(one for one in _batches(place, samples) if one.at_s <= samples[-1].at_s)
    limit = [one for one in batches if one.at_limit]
    gone = broken and place == 1
    second = int(samples[-1].at_s)
    return msgspec.structs.replace(
        node,
        alive=not gone,
        slices=() if gone else tuple(number for number in range(SLICES) if number % 2 == place),
        batches=batches[-BATCHES_SAID:],
        limit_rows=float(sum(one.rows for one in limit)),
        limit_s=sum(one.seconds for one in limit),
        rejects={"not JSON": 40 + second % 1000 // 9, "the same identity with another payload": 3, "too old": 2},
        rejected_devices=(
            ("device-000412", "not JSON", 38),
            ("<b>device</b>", "the same identity with another payload", 3),
            ("device-000007", "too old", 2),
        ),
        problem="The disk that the tables are on is full: free some space; the query is started anew."
        if gone
        else None,
    )


def _batches(place: int, samples: tuple[Sample, ...]) -> list[Batch]:
    """Short ones while nothing waits; while something does, long ones at the limit."""
    found: list[Batch] = []
    ended_s = samples[0].at_s + place / 10
    for sample in samples:
        while ended_s < sample.at_s:
            is_full = sample.waiting > 50
            seconds = 1.4 + 0.1 * (len(found) % 3) if is_full else 0.19 + 0.01 * (len(found) * 7 % 5)
            per_s = NODE_PER_S * (1 + 0.04 * (len(found) * 5 % 7 - 3) / 3) if is_full else sample.arrival_per_s / 2
            ended_s += seconds if is_full else 0.25
            rows = int(per_s * (seconds if is_full else 0.25))
            found.append(Batch(at_s=ended_s, rows=rows, seconds=seconds, at_limit=is_full))
    return found


def _slice(number: int, samples: tuple[Sample, ...], broken: bool) -> SliceState:
    now = samples[-1]
    stored = int(sum(sample.arrival_per_s for sample in samples) * 0.5 / SLICES)
    one = SliceState(
        number=number,
        owner=f"node-{number % 2 + 1}",
        epoch=4 + number,
        taker="node-2" if number == MOVING else None,
        stored=stored,
        waiting=now.waiting // SLICES + number,
        age_s=now.age_s * (1 + number / 20),
    )
    if number == LAGGING:
        return msgspec.structs.replace(one, waiting=1_930, age_s=24.2)
    if broken and number == FREE:
        return msgspec.structs.replace(one, owner=None)
    if broken and number >= FREE:
        return msgspec.structs.replace(one, stored=None, waiting=None, age_s=None)
    return one


def _tables(now_s: float, broken: bool) -> TablesState:
    said_s = now_s - 190.0 if broken else now_s - 2.0
    day = datetime.fromtimestamp(now_s - 90 * 86_400, UTC).date().isoformat()
    sizes = {"readings": (412, 930, 7_300_000_000, 104_220_911), "means": (96, 310, 41_000_000, 1_733_204)}
    health = {
        name: TableHealth(active_files=files, log_entries=entries, bytes=size, rows=rows, dates=91, oldest_date=day)
        for name, (files, entries, size, rows) in sizes.items()
    }
    health["rejected"] = TableHealth(active_files=0, log_entries=1, bytes=0, rows=0, dates=0)
    runs = (
        _run("means", said_s - 700, 3.1, files_merged=88, files_written=4),
        _run("rejected", said_s - 420, 0.2),
        _run(
            "readings",
            said_s - 170,
            41.0,
            files_merged=1_204,
            files_written=16,
            files_removed=1_180,
            log_entries_removed=3_400,
            dates_dropped=1,
            problem="The disk is full: free some space." if broken else None,
        ),
    )
    return TablesState(
        maintainer="maintainer-1",
        at_s=said_s,
        tables=health,
        runs=runs,
        next_s=said_s + 130,
        alarms=("readings has 12,400 log entries, more than the 10,000 that are allowed.",) if broken else (),
    )


def _run(table: str, at_s: float, seconds: float, *, problem: str | None = None, **counts: int) -> MaintenanceRun:
    return MaintenanceRun(table=table, at_s=at_s, seconds=seconds, problem=problem, **counts)
