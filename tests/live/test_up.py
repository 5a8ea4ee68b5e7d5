"""``tidegate up`` as a person uses it: start, look, stop; nothing stays behind."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from support.bus import ControlBus
from support.processes import RATE_FLEET, TIDEGATE, family, said, tidegate
from support.waiting import until

from tidegate.bus.installation import FILE_NAME, load_installation

pytestmark = [pytest.mark.live, pytest.mark.timeout(180)]


@pytest.fixture
def running(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    with (tmp_path / "up.log").open("wb") as log:
        process = subprocess.Popen([*TIDEGATE, "up", "--state", str(tmp_path / "state")], stderr=log, stdout=log)
    yield process
    if process.poll() is None:
        process.kill()
        process.wait()


def wait_for_the_node(state: Path) -> None:
    """Asked of the bus, because a command every moment would keep a core from what is starting."""
    until((state / FILE_NAME).exists, 60, every_s=0.1)
    with ControlBus(load_installation(state)) as bus:
        until(lambda: "node-1" in bus.assignments.alive(), 90, every_s=0.1)


def test_up_serves_until_ctrl_c_and_leaves_nothing_running(running: subprocess.Popen[bytes], tmp_path: Path) -> None:
    state = tmp_path / "state"
    here = ("--state", str(state))
    wait_for_the_node(state)
    assert "node-1" in json.loads(said("status", "--json", *here))["nodes"]
    fleet = [*RATE_FLEET, *here, "--acks", str(state / "acks")]
    subprocess.run([*fleet, "--devices", "20", "--rate", "200", "--seconds", "2"], check=True, timeout=60)
    until(lambda: tidegate("ledger", "check", "--json", *here).returncode == 0, 60, every_s=0.3)
    assert "1 processing node(s) run." in said("status", *here)
    with ControlBus(load_installation(state)) as bus:
        always = {"gateways", "leader", "lease", "loop", "offsets", "progress", "routes", "scale", "slices"}
        always |= {"tables"}
        until(lambda: always <= bus.documents())
    assert "readings" in said("table", "compact", *here)
    assert tidegate("ledger", "check", "--json", *here).returncode == 0
    _, *children = family(running.pid)
    assert children
    os.kill(running.pid, signal.SIGINT)
    assert running.wait(timeout=60) == 0
    _, alive = psutil.wait_procs(children, timeout=20)
    assert alive == []
    assert not (state / "installation.json").exists()


def test_nothing_outlives_a_killed_up(running: subprocess.Popen[bytes], tmp_path: Path) -> None:
    wait_for_the_node(tmp_path / "state")
    _, *children = family(running.pid)
    running.kill()
    running.wait()
    _, alive = psutil.wait_procs(children, timeout=40)
    assert alive == []
