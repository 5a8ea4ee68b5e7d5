"""The maintainer and its commands with a real control bus: beside a writer, killed, and by hand."""

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from support.bus import ControlBus
from support.processes import TIDEGATE, said, tidegate
from support.waiting import until

from maintaining import SLICES, Writer, active, data_files, days_ago, stored
from tidegate.bus.documents import MAINTAINER, TABLES
from tidegate.bus.installation import save_installation
from tidegate.model.installation import Installation
from tidegate.model.tables import TablesState
from tidegate.pipeline.maintenance.turn import Turn

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]
OFTEN = {"TIDEGATE_MAINTENANCE__EVERY_S": "1", "TIDEGATE_MAINTENANCE__LEASE_S": "5"}


@pytest.fixture
def here(installation: Installation, tmp_path: Path) -> Installation:
    """The shared brokers, with tables of the test's own."""
    mine = msgspec.structs.replace(installation, tables=str(tmp_path / "tables"))
    save_installation(mine, tmp_path)
    return mine


@pytest.fixture
def bus(here: Installation) -> Iterator[ControlBus]:
    with ControlBus(here) as opened:
        yield opened


def started(state: Path, **environment: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [*TIDEGATE, "maintainer", "--state", str(state)], env={**os.environ, **OFTEN, **environment}
    )


def ended(process: subprocess.Popen[bytes], number: int = signal.SIGTERM) -> int:
    process.send_signal(number)
    return process.wait(30)


def test_a_table_stays_small_while_it_is_written_and_its_maintainer_is_killed(
    here: Installation, bus: ControlBus, tmp_path: Path
) -> None:
    tables = Path(here.tables)
    writer, enough = Writer(tables), threading.Event()

    def write() -> None:
        while not enough.wait(0.02):
            writer.write(2)

    def has_merged(since_s: float) -> bool:
        said = bus.get(TABLES)
        return said is not None and any(run.at_s > since_s and run.files_merged for run in said.runs)

    thread = threading.Thread(target=write)
    thread.start()
    processes = []
    try:
        for _ in range(3):
            since_s = time.time()
            processes.append(started(tmp_path))
            until(lambda since_s=since_s: has_merged(since_s), 60, every_s=0.1)
            if len(processes) < 3:
                until(lambda: bus.get(MAINTAINER) is not None, 30, every_s=0.01)
                ended(processes[-1], signal.SIGKILL)
        enough.set()
        thread.join()
        until(lambda: len(active(tables)) < 30, 60, every_s=0.2)
    finally:
        enough.set()
        statuses = [ended(process) for process in processes if process.poll() is None]
    assert statuses == [0]
    rows = stored(tables)
    expected = [(slice_, offset) for slice_ in range(SLICES) for offset in range(1, writer.offsets[slice_] + 1)]
    assert [(row["slice"], row["offset"]) for row in rows] == expected
    state = bus.get(TABLES)
    assert state is not None
    assert state.maintainer == "maintainer-1"
    assert state.alarms == ()
    assert bus.get(MAINTAINER) is None, "it gave its turn back"


def test_a_table_that_cannot_be_read_is_named_and_the_others_are_looked_after(
    here: Installation, bus: ControlBus, tmp_path: Path
) -> None:
    tables = Path(here.tables)
    writer = Writer(tables)
    for _ in range(20):
        writer.write()
    (tables / "means" / "_delta_log").mkdir(parents=True)
    (tables / "means" / "_delta_log" / f"{0:020d}.json").write_text("no log entry")
    maintainer = started(tmp_path)
    try:
        until(lambda: len(active(tables)) < 9, 60, every_s=0.2)
        until(lambda: any("means" in alarm for alarm in (bus.get(TABLES) or _NOTHING).alarms), 30, every_s=0.2)
    finally:
        assert ended(maintainer) == 0


_NOTHING = TablesState(maintainer="", at_s=0.0)


def test_what_can_be_done_by_hand(here: Installation, tmp_path: Path) -> None:
    tables, state = Path(here.tables), ("--state", str(tmp_path))
    refused = tidegate("table", "status", *state)
    assert refused.returncode == 2
    assert "no tables" in refused.stderr
    writer = Writer(tables)
    for _ in range(20):
        writer.write()
    writer.write(day=days_ago(100))
    before, files = stored(tables), data_files(tables)
    (row,) = json.loads(said("table", "status", "--json", *state))["rows"]
    assert (row["table"], row["active_files"], row["rows"], row["dates"]) == ("readings", 21, len(before), 2)
    (row,) = json.loads(said("table", "compact", "--dry-run", "--json", *state))["rows"]
    assert row["files"] == 20
    assert data_files(tables) == files
    (row,) = json.loads(said("table", "compact", "--table", "readings", "--json", *state))["rows"]
    assert (row["files_before"], row["files"]) == (21, 2)
    assert stored(tables) == before
    assert len(active(tables)) == 2
    assert "readings" in said("table", "vacuum", *state)
    assert files <= data_files(tables), "they were replaced a moment ago"
    days = {"TIDEGATE_MAINTENANCE__READINGS_DAYS": "40"}
    planned = tidegate("table", "retain", "--dry-run", "--json", *state, **days)
    assert json.loads(planned.stdout)["rows"][0]["first"] == str(days_ago(100))
    assert stored(tables) == before
    refused = tidegate("table", "retain", *state, **days)
    assert refused.returncode == 1
    assert "--trust-clock" in refused.stderr
    assert stored(tables) == before
    assert tidegate("table", "retain", "--trust-clock", *state, **days).returncode == 0
    assert len(stored(tables)) == len(before) - 5 * SLICES
    short = tidegate("table", "retain", *state, TIDEGATE_MAINTENANCE__READINGS_DAYS="3")
    assert short.returncode == 2
    assert "identity_horizon_days" in short.stderr


def test_a_damaged_file_is_named_and_taken_out_by_hand(here: Installation, tmp_path: Path) -> None:
    tables, state = Path(here.tables), ("--state", str(tmp_path))
    writer = Writer(tables)
    for _ in range(4):
        writer.write()
    name = min(active(tables))
    assert "all checks hold" in said("table", "check", *state)
    path = tables / "readings" / name
    path.write_bytes(path.read_bytes()[:-100])
    assert json.loads(tidegate("table", "status", "--json", *state).stdout)["rows"][0]["damaged_files"] == 1
    found = tidegate("table", "check", "--json", *state)
    assert found.returncode == 1
    assert json.loads(found.stdout)["rows"][0]["damaged"][0].startswith(f"{name} cannot be read")
    assert tidegate("table", "check", "--remove", name, *state).returncode == 2, "of which table?"
    assert tidegate("table", "check", "--table", "readings", "--remove", name, *state).returncode == 0
    assert len(active(tables)) == 3
    assert (tables / "readings" / "_damaged" / name).exists()


def test_by_hand_waits_for_whoever_has_the_turn(here: Installation, bus: ControlBus, tmp_path: Path) -> None:
    Writer(Path(here.tables))
    turn = Turn(bus, "maintainer-9", 30)
    assert turn.take()
    process = subprocess.Popen(
        [*TIDEGATE, "table", "vacuum", "--state", str(tmp_path)], stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stderr is not None
        waiting = next(line for line in process.stderr if "waiting" in line)
        assert "maintainer-9" in waiting
        turn.end()
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.communicate()
