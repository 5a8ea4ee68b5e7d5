"""``tidegate up`` as a person uses it: start, look, stop; nothing stays behind."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

pytestmark = [pytest.mark.live, pytest.mark.timeout(180)]
TIDEGATE = [sys.executable, "-m", "tidegate.cli.main"]


@pytest.fixture
def running(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    with (tmp_path / "up.log").open("wb") as log:
        process = subprocess.Popen([*TIDEGATE, "up", "--state", str(tmp_path / "state")], stderr=log, stdout=log)
    yield process
    if process.poll() is None:
        process.kill()
        process.wait()


def status(state: Path) -> dict:
    done = subprocess.run(
        [*TIDEGATE, "status", "--json", "--state", str(state)], capture_output=True, text=True, timeout=60, check=False
    )
    return json.loads(done.stdout) if done.returncode == 0 else {}


def until(condition, timeout_s: float = 60.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.3)


def family(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    return psutil.Process(process.pid).children(recursive=True)


def test_up_serves_until_ctrl_c_and_leaves_nothing_running(running: subprocess.Popen[bytes], tmp_path: Path) -> None:
    state = tmp_path / "state"
    until(lambda: "node-1" in status(state).get("nodes", {}))
    load = [sys.executable, "-m", "tidegate_bench.rig.steady_load", "--state", str(state), "--acks", f"{state}/acks"]
    subprocess.run([*load, "--devices", "20", "--rate", "200", "--seconds", "2"], check=True, timeout=60)
    ledger = [*TIDEGATE, "ledger", "check", "--state", str(state), "--json"]
    until(lambda: subprocess.run(ledger, capture_output=True, timeout=60, check=False).returncode == 0)
    table = subprocess.run(
        [*TIDEGATE, "status", "--state", str(state)], capture_output=True, text=True, timeout=60, check=True
    )
    assert "1 processing node(s) run." in table.stdout
    compacted = subprocess.run(
        [*TIDEGATE, "compact", "--state", str(state)], capture_output=True, text=True, timeout=60, check=True
    )
    assert "readings:" in compacted.stdout
    assert subprocess.run(ledger, capture_output=True, timeout=60, check=False).returncode == 0
    children = family(running)
    assert children
    os.kill(running.pid, signal.SIGINT)
    assert running.wait(timeout=60) == 0
    _, alive = psutil.wait_procs(children, timeout=20)
    assert alive == []
    assert not (state / "installation.json").exists()


def test_nothing_outlives_a_killed_up(running: subprocess.Popen[bytes], tmp_path: Path) -> None:
    until(lambda: "node-1" in status(tmp_path / "state").get("nodes", {}))
    children = family(running)
    running.kill()
    running.wait()
    _, alive = psutil.wait_procs(children, timeout=40)
    assert alive == []
