"""The demo as a person runs it: a short one to its verdict, and Ctrl-C at any moment."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import psutil
import pytest
from support.processes import TIDEGATE, family

pytestmark = [pytest.mark.live, pytest.mark.timeout(290)]
DEMO = [*TIDEGATE, "demo", "--headless"]


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the demo, and nobody else meanwhile, puts what it needs for a while."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def test_a_short_demo_ends_with_a_verdict_that_can_be_recomputed(temporary: Path) -> None:
    done = subprocess.run([*DEMO, "--seconds", "5", "--json"], capture_output=True, text=True, timeout=280, check=False)
    report = json.loads(done.stdout)
    checks = {check["name"]: check for check in report["checks"]}
    assert set(checks) == {"delay_ratio", "capacity_used", "ledger_exact", "fleet_kept_schedule"}
    assert checks["ledger_exact"]["holds"]
    # A short flood on a busy machine proves no ratio; that protection made data fresher it does show.
    assert checks["delay_ratio"]["value"] < 1
    assert done.returncode == (0 if all(check["holds"] for check in report["checks"]) else 1)
    without, protected = report["rows"][:2]
    for act in report["rows"][2:4]:
        seconds = [row for row in report["rows"] if row.get("act") == act["name"] and "second" in row]
        assert sum(row["messages"] for row in seconds) == act["fleet"]["sent"]
        assert sum(row["readings"] for row in seconds) == act["fleet"]["samples"]
    assert protected["messages"] < without["messages"]
    assert "Verdict" in done.stderr
    assert list(temporary.glob("tidegate-demo-*")) == []


@pytest.mark.parametrize("after_s", [0.7, 4.0, 13.0])
def test_ctrl_c_leaves_no_process_and_no_file(after_s: float, temporary: Path) -> None:
    with (temporary / "said").open("wb") as said:
        demo = subprocess.Popen(DEMO, stdout=said, stderr=said, env={**os.environ, "PYTHONFAULTHANDLER": "1"})
    try:
        time.sleep(after_s)
        _, *children = family(demo.pid)
        os.kill(demo.pid, signal.SIGINT)
        status = ended(demo)
    finally:
        demo.kill()
        demo.wait()
    assert status == 130, (temporary / "said").read_text()
    _, alive = psutil.wait_procs(children, timeout=20)
    assert alive == []
    assert list(temporary.glob("tidegate-demo-*")) == []


def ended(demo: subprocess.Popen[bytes]) -> int:
    """The status with which it ends; one that does not is made to say what it is waiting for."""
    try:
        return demo.wait(timeout=60)
    except subprocess.TimeoutExpired:
        demo.send_signal(signal.SIGABRT)
        return demo.wait(timeout=20)
