"""Devices to tables through real brokers and real Spark: bad input, moves, kills, frozen nodes."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import paho.mqtt.client as mqtt
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from conftest import NODES, SETTINGS
from tidegate.brokers.nats.ingest import last_sequences
from tidegate.bus.wire import Wire
from tidegate.pipeline.tables.tables import Tables
from tidegate.pipeline.transforms.means import merge
from tidegate_bench.nodes.table_log import TableLog, accepted_fenced_writes
from tidegate_bench.rig.installation import Rig

pytestmark = [pytest.mark.live, pytest.mark.timeout(180)]


def table(rig: Rig, name: str) -> pa.Table:
    return DeltaTable(str(Path(rig.installation.tables) / name)).to_pyarrow_table()


def owners(rig: Rig) -> list[str | None]:
    return [hold.owner for hold in rig.assignments.current().ownerships]


def spread(rig: Rig) -> None:
    for slice_ in range(rig.installation.slices):
        rig.assignments.move(slice_, NODES[slice_ % 2])
    rig.wait("the slices to be spread", lambda: owners(rig) == ["left", "right", "left", "right"], 30)


def publish(rig: Rig, *messages: tuple[str, bytes]) -> None:
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, client_id=f"test-{time.time_ns()}")
    client.username_pw_set(rig.installation.mqtt_user, rig.installation.mqtt_password)
    client.connect(*rig.installation.mqtt_addresses[0])
    client.loop_start()
    for topic, payload in messages:
        client.publish(topic, payload, qos=1).wait_for_publish(timeout=10)
    client.disconnect()
    client.loop_stop()


def fleet(rig: Rig, name: str, seconds: float = 6.0, rate: float = 400.0) -> Any:
    boot = time.time_ns() // 1_000_000
    return rig.start_load(name, devices=40, connections=4, rate=rate, seconds=seconds, seed=1, boot=boot, drain_s=60)


def settle(rig: Rig, running: Any) -> None:
    summary = running.last_answer()
    assert summary["acked"] == summary["sent"] > 0
    rig.wait("every acknowledged reading", lambda: not rig.ledger().lost, 90)
    verdict = rig.ledger()
    assert (verdict.lost, verdict.duplicated) == (0, 0)


def test_good_and_bad_payloads_side_by_side(rig: Rig) -> None:
    def good(seq: int) -> bytes:
        return json.dumps({"boot": 1, "seq": seq, "time": 1_760_000_000 + seq, "value": seq}).encode()

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
    publish(rig, *messages)

    def rows(name: str, column: str) -> list[dict[str, Any]]:
        return [row for row in table(rig, name).to_pylist() if "mixed.1" in row[column]]

    rig.wait("the rows", lambda: len(rows("readings", "device")) == 4 and len(rows("rejected", "topic")) == 3, 60)
    readings = rows("readings", "device")
    assert sorted(row["seq"] for row in readings if row["identified"]) == [1, 2, 3]
    assert [row["value"] for row in readings if not row["identified"]] == [7.0]
    reasons = sorted(row["reason"] for row in rows("rejected", "topic"))
    assert reasons[0].startswith("not JSON")
    assert reasons[1] == "not a reading: Expected `float`, got `str` - at `$.value`"
    assert reasons[2] == "the payload has 200018 bytes, more than 65536"
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
    documents = [rig.progress(name) for name in NODES]
    slices = {slice_: figures for document in documents for slice_, figures in document["slices"].items()}
    assert slices
    for figures in slices.values():
        assert {"epoch", "committed", "rows", "bytes", "lag", "cost_us_per_row", "age_s"} <= set(figures)
    assert any(document["query"].get("processed_rows_per_s") for document in documents)


def test_what_is_committed_leaves_the_log_but_nothing_else_does(rig: Rig) -> None:
    settle(rig, fleet(rig, "purge", seconds=2))

    def states() -> list[dict[str, Any]]:
        with Wire(rig.installation.data_urls) as wire:
            infos = [json.loads(wire.request(f"$JS.API.STREAM.INFO.SLICE_{s}").payload) for s in range(4)]
        return [info["state"] for info in infos]

    rig.wait("the log to be purged", lambda: sum(state["messages"] for state in states()) <= 4, 30)
    tables = Tables(Path(rig.installation.tables))
    for slice_, state in enumerate(states()):
        # The message at the committed offset stays: its time stamp is evidence.
        assert state["first_seq"] == tables.readings.position(slice_).offset == state["last_seq"]


def test_the_same_node_twice_is_refused_with_a_sentence(rig: Rig) -> None:
    command = [sys.executable, "-m", "tidegate.cli.main", "node", "--name", "left", "--state", str(rig.state)]
    started = time.monotonic()
    second = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert second.returncode == 2
    assert (
        second.stderr.strip()
        .splitlines()[-1]
        .endswith("A node named left is running already: stop it, or choose another --name.")
    )
    assert time.monotonic() - started < 20


def test_a_frozen_node_loses_its_slices_and_can_add_nothing_when_it_wakes(rig: Rig) -> None:
    spread(rig)
    running = fleet(rig, "frozen", seconds=8)
    time.sleep(1.5)
    rig.nodes["left"].signal_all(signal.SIGSTOP)
    rig.wait("the take-over", lambda: set(owners(rig)) == {"right"}, 20)
    time.sleep(1.5)
    rig.nodes["left"].signal_all(signal.SIGCONT)
    settle(rig, running)
    advances = list(TableLog(Path(rig.installation.tables) / "readings").new())
    assert accepted_fenced_writes(advances) == 0


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
    rig.brokers.kill_node(0)
    time.sleep(0.5)
    rig.brokers.start_node(0)
    settle(rig, running)
    with Wire(rig.installation.data_urls) as wire:
        assert sum(last_sequences(wire, range(4)).values()) > 0
