"""A user's mistake, or the machine's, is one clear sentence."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidegate.brokers.settings import BrokerSettings
from tidegate_bench.rig.installation import Rig

pytestmark = [pytest.mark.live, pytest.mark.timeout(180)]


def tidegate(*arguments: str, **environment: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "tidegate.cli.main", *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, env={**os.environ, **environment}
    )
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr.strip().splitlines()[-1]


def test_no_installation(tmp_path: Path) -> None:
    status, said = tidegate("node", "--state", str(tmp_path))
    assert status == 2
    assert f"No running installation in {tmp_path}: start one with 'tidegate up'" in said


def test_an_unknown_key_is_refused_by_name(tmp_path: Path) -> None:
    config = tmp_path / "tidegate.toml"
    config.write_text("[node]\ntriger_ms = 5\n")
    status, said = tidegate("up", "--state", str(tmp_path / "state"), "--config", str(config))
    assert status == 2
    assert "triger_ms" in said
    assert "trigger_ms" in said
    assert str(config) in said
    assert not (tmp_path / "state").exists()


def test_a_port_in_use_is_named_before_anything_starts(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen(1)
        port = taken.getsockname()[1]
        status, said = tidegate("up", "--state", str(tmp_path), TIDEGATE_BROKER__MQTT_PORTS=f"[{port}]")
    assert status == 2
    assert str(port) in said


def test_a_java_home_without_java(rig: Rig) -> None:
    status, said = tidegate("node", "--state", str(rig.state), "--name", "no-java", JAVA_HOME="/nowhere")
    assert status == 2
    assert "JAVA_HOME is /nowhere, which has no bin/java: correct it, or unset it" in said


def test_a_move_that_cannot_be(rig: Rig) -> None:
    status, said = tidegate("move", "99", "--to", "left", "--state", str(rig.state))
    assert status == 2
    assert "there is no slice 99: slices are 0 to 3" in said


# -- a full disk


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    directory = tmp_path / "state" / "tables"
    directory.mkdir(parents=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(directory)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("left out: mounting a small disk needs root")
    yield directory
    subprocess.run(["umount", "--lazy", str(directory)], check=True)


def test_a_full_disk_stops_nothing_for_good(small_disk: Path) -> None:
    with Rig(BrokerSettings(slices=2), small_disk.parent) as rig:
        rig.start_node("only", trigger_ms="100", lease_s="2")
        rig.wait("the node", lambda: "only" in rig.assignments.alive())
        rig.wait("its tables", (small_disk / "rejected" / "_delta_log").exists)
        ballast = small_disk / "ballast"
        with ballast.open("wb") as file:
            try:
                while True:
                    file.write(b"\0" * 65_536)
                    file.flush()
            except OSError:
                pass
        running = rig.start_load("full", devices=20, connections=2, rate=300, seconds=3, seed=1, drain_s=60)
        sentence = f"The disk of {small_disk} is full: free some space; the readings wait in the log meanwhile."
        rig.wait("the sentence", lambda: sentence in (rig.state / "only.log").read_text(), 60)
        summary = running.last_answer()
        assert summary["acked"] == summary["sent"]
        time.sleep(0.5)
        ballast.unlink()
        rig.wait("every acknowledged reading", lambda: not rig.ledger().lost, 60)
        verdict = rig.ledger()
        assert (verdict.lost, verdict.duplicated) == (0, 0)
