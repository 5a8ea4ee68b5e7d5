"""The nodes of the shared rig, and what tests of the way into the tables do with it."""

import time
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from tidegate_bench.rig.installation import Rig

NODES = ("left", "right")
# A healthy query is never silent for as long as ``stall_s_min``, whatever else a test does to it.
SETTINGS = {
    "trigger_ms": "100",
    "lease_s": "2",
    "stall_s_min": "6",
    "window_s": "10",
    "snapshot_s": "1",
    "purge_s": "2",
    "job_silent_s_max": "5",
}


def table(rig: Rig, name: str) -> pa.Table:
    return DeltaTable(str(Path(rig.installation.tables) / name)).to_pyarrow_table()


def owners(rig: Rig) -> list[str | None]:
    return [hold.owner for hold in rig.assignments.current().ownerships]


def spread(rig: Rig) -> None:
    for slice_ in range(rig.installation.slices):
        rig.assignments.move(slice_, NODES[slice_ % 2])
    rig.wait("the slices to be spread", lambda: owners(rig) == ["left", "right", "left", "right"], 30)


def fleet(rig: Rig, name: str, seconds: float = 6.0, rate: float = 400.0) -> Any:
    boot = time.time_ns() // 1_000_000
    return rig.start_load(name, devices=40, connections=4, rate=rate, seconds=seconds, seed=1, boot=boot, drain_s=60)


def settle(rig: Rig, running: Any) -> None:
    summary = running.last_answer()
    assert summary["acked"] == summary["sent"] > 0
    rig.wait("every acknowledged reading", lambda: not rig.ledger().lost, 90)
    verdict = rig.ledger()
    assert (verdict.lost, verdict.duplicated) == (0, 0)
