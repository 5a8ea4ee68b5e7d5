"""Devices to tables through real brokers and real Spark: bad input, moves, kills, frozen nodes."""

import json
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from support.clients import publish_all
from support.log import Log
from support.processes import tidegate
from support.rigs import NODES, SETTINGS, fleet, owners, settle, spread, table

from tidegate.pipeline.tables.tables import Tables
from tidegate.pipeline.transforms.means import merge
from tidegate_bench.nodes.table_log import TableLog, accepted_fenced_writes
from tidegate_bench.rig.following import asked_regularly
from tidegate_bench.rig.installation import Rig

pytestmark = [pytest.mark.live, pytest.mark.timeout(180)]


def test_good_and_bad_payloads_side_by_side(rig: Rig) -> None:
    def good(seq: int) -> bytes:
        return json.dumps({"boot": 1, "seq": seq, "time": int(time.time()) - 9 + seq, "value": seq}).encode()

    messages = [
        ("telemetry/mixed.1", good(1)),
        ("telemetry/mixed.1", b"not json"),
        ("telemetry/mixed.1", b'{"value":"warm"}'),
        ("telemetry/mixed.1", b'{"value":1,"x":"' + b"y" * 200_000 + b'"}'),
        ("telemetry/mixed.1/deeper/still", good(2)),
        ("telemetry/mixed.1", good(2)),
        ("telemetry/mixed.1", b'{"value":7}'),
        ("telemetry/mixed.1", good(3)),
    ]
    publish_all(rig.installation, "mixed", messages)

    def rows(name: str, column: str) -> list[dict[str, Any]]:
        return [row for row in table(rig, name).to_pylist() if "mixed.1" in row[column]]

    rig.wait("the rows", lambda: len(rows("readings", "device")) == 4 and len(rows("rejected", "topic")) == 3, 60)
    readings = rows("readings", "device")
    assert sorted(row["seq"] for row in readings if row["identified"]) == [1, 2, 3]
    assert [row["value"] for row in readings if not row["identified"]] == [7.0]
    reasons = sorted(row["reason"] for row in rows("rejected", "topic"))
    assert reasons[0].startswith("not JSON")
    assert reasons[1] == "not a reading: Expected `float`, got `str` - at `$.value`"
    assert reasons[2] == "too large: the payload has 200018 bytes, more than 65536"
    merged = [row for row in merge(table(rig, "means"), 10).to_pylist() if row["device"] == "mixed.1"]
    assert sum(row["count"] for row in merged) == 4
    assert sum(row["unidentified"] for row in merged) == 1


def test_slices_move_while_readings_flow(rig: Rig) -> None:
    spread(rig)
    running = fleet(rig, "moves", seconds=8)
    for slice_, taker in [(0, "right"), (1, "left"), (0, "left"), (1, "right")]:
        time.sleep(1.0)
        assert rig.assignments.move(slice_, taker) is None
        rig.wait(f"slice {slice_} on {taker}", lambda s=slice_, t=taker: owners(rig)[s] == t, 20)
    settle(rig, running)


def test_progress_per_slice_is_on_the_control_bus(rig: Rig) -> None:
    settle(rig, fleet(rig, "progress", seconds=3))
    said = [progress for name in NODES if (progress := rig.progress(name)) is not None]
    slices = [figures for one in said for figures in one.slices.values()]
    assert slices
    for figures in slices:
        assert min(figures.epoch, figures.committed, figures.rows, figures.bytes) > 0
        assert min(figures.cost_us_per_row, figures.age_s) > 0
        assert figures.lag >= 0
    assert any(one.query.get("processed_rows_per_s") for one in said)
    batches = [batch for one in said for batch in one.batches]
    assert batches
    assert all(batch.rows > 0 and 0 < batch.seconds < 60 for batch in batches)
    assert all(abs(time.time() - batch.at_s) < 600 for batch in batches), "Spark's time is read as what it is"


def test_what_is_committed_leaves_the_log_but_nothing_else_does(rig: Rig) -> None:
    settle(rig, fleet(rig, "purge", seconds=2))

    def states() -> list[dict[str, Any]]:
        with Log(rig.installation) as log:
            return [log.state(slice_) for slice_ in range(rig.installation.slices)]

    rig.wait("the log to be purged", lambda: sum(state["messages"] for state in states()) <= 4, 30)
    tables = Tables(Path(rig.installation.tables))
    for slice_, state in enumerate(states()):
        # The message at the committed offset stays: its time stamp is evidence.
        assert state["first_seq"] == tables.readings.position(slice_).offset == state["last_seq"]


def test_the_same_node_twice_is_refused_with_a_sentence(rig: Rig) -> None:
    started = time.monotonic()
    second = tidegate("node", "--name", "left", "--state", str(rig.state))
    assert second.returncode == 2
    assert (
        second.stderr.strip()
        .splitlines()[-1]
        .endswith("A node named left is running already: stop it, or choose another --name.")
    )
    assert time.monotonic() - started < 20


def test_a_frozen_node_loses_its_slices_and_can_add_nothing_when_it_wakes(rig: Rig) -> None:
    spread(rig)
    log = TableLog(Path(rig.installation.tables) / "readings")
    running = fleet(rig, "frozen", seconds=8)
    time.sleep(1.5)
    rig.nodes["left"].signal_all(signal.SIGSTOP)
    rig.wait("the take-over", lambda: set(owners(rig)) == {"right"}, 20)
    time.sleep(1.5)
    rig.nodes["left"].signal_all(signal.SIGCONT)
    with asked_regularly(log.follow):
        settle(rig, running)
    assert {advance.slice for advance in log.advances if advance.files} == set(range(rig.installation.slices))
    assert accepted_fenced_writes(log.advances) == 0


def test_a_killed_node_is_taken_over_from_and_comes_back(rig: Rig) -> None:
    rig.wait("left to live", lambda: "left" in rig.assignments.alive(), 30)
    spread(rig)
    running = fleet(rig, "killed", seconds=8)
    time.sleep(1.5)
    rig.nodes["left"].kill()
    rig.wait("the take-over", lambda: set(owners(rig)) == {"right"}, 20)
    settle(rig, running)
    rig.start_node("left", **SETTINGS)
    rig.wait("left to be back", lambda: "left" in rig.assignments.alive(), 60)


def test_a_killed_worker_only_delays(rig: Rig) -> None:
    running = fleet(rig, "worker", seconds=5)
    time.sleep(1.5)
    for node in rig.nodes.values():
        for worker in node.workers():
            worker.kill()
    settle(rig, running)


def test_the_broker_restarts_and_nothing_acknowledged_is_missing(rig: Rig) -> None:
    running = fleet(rig, "broker", seconds=5)
    time.sleep(1.5)
    rig.brokers.kill_broker(0)
    time.sleep(0.5)
    rig.brokers.start_broker(0)
    settle(rig, running)
    with Log(rig.installation) as log:
        assert log.count() > 0
