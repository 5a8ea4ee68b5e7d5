"""A user's mistake, or the machine's, is one clear sentence."""

import contextlib
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.bus import ControlBus
from support.log import Log
from support.processes import said, tidegate
from support.rigs import NODES, fleet, settle, spread

from tidegate.bus.documents import JOBS, SLICES
from tidegate_bench.rig.installation import Rig

pytestmark = [pytest.mark.live, pytest.mark.timeout(180)]


def mistaken(*arguments: str, **environment: str) -> tuple[int, str]:
    """How a command ends, and the last thing it says."""
    done = tidegate(*arguments, **environment)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr.strip().splitlines()[-1]


def test_no_installation(tmp_path: Path) -> None:
    status, said = mistaken("node", "--state", str(tmp_path))
    assert status == 2
    assert f"No running installation in {tmp_path}: start one with 'tidegate up'" in said


def test_an_unknown_key_is_refused_by_name(tmp_path: Path) -> None:
    config = tmp_path / "tidegate.toml"
    config.write_text("[node]\ntriger_ms = 5\n")
    status, said = mistaken("up", "--state", str(tmp_path / "state"), "--config", str(config))
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
        status, said = mistaken("up", "--state", str(tmp_path), TIDEGATE_BROKER__MQTT_PORTS=f"[{port}]")
    assert status == 2
    assert str(port) in said


def test_a_java_home_without_java(state: Path) -> None:
    status, said = mistaken("node", "--state", str(state), "--name", "no-java", JAVA_HOME="/nowhere")
    assert status == 2
    assert "JAVA_HOME is /nowhere, which has no bin/java: correct it, or unset it" in said


def test_a_move_that_cannot_be(state: Path) -> None:
    status, said = mistaken("move", "99", "--to", "left", "--state", str(state))
    assert status == 2
    assert "there is no slice 99: slices are 0 to 1" in said


def test_a_full_disk_stops_nothing_for_good(rig: Rig, small_disk: Path) -> None:
    sentence = f"The disk of {small_disk} is full: free some space; the readings wait in the log meanwhile."
    spread(rig)
    with filled(small_disk):
        running = fleet(rig, "full", seconds=3, rate=300)
        for name in NODES:
            rig.wait("the sentence", lambda log=rig.state / f"{name}.log": sentence in log.read_text(), 60)
        summary = running.last_answer()
        assert summary["acked"] == summary["sent"]
        time.sleep(0.5)
    rig.wait("every acknowledged reading", lambda: not rig.ledger().lost, 60)
    verdict = rig.ledger()
    assert (verdict.lost, verdict.duplicated) == (0, 0)


def test_a_job_that_cannot_be_read_is_named_keeps_what_it_had_and_expires(rig: Rig) -> None:
    def alarms() -> str:
        return " ".join(alarm_of(rig, name) or "" for name in NODES)

    def first_sequences() -> list[int]:
        with Log(rig.installation) as log:
            return [log.state(slice_)["first_seq"] for slice_ in range(rig.installation.slices)]

    settle(rig, fleet(rig, "job-before", seconds=1))
    with ControlBus(rig.installation) as bus, Log(rig.installation) as log:
        reached = log.ends()
        for _ in range(6):  # it lives, and reads nothing
            bus.put(JOBS, reached, "nightly")
            time.sleep(0.5)
        running = fleet(rig, "job-during", seconds=2)
        bus.put_raw("jobs.nightly", b"{{")
        rig.wait("the alarm", lambda: "'jobs.nightly' on the control bus is damaged" in alarms(), 20)
        settle(rig, running)
        assert any(first <= reached[slice_] for slice_, first in enumerate(first_sequences())), "it keeps what it had"
        rig.wait("its end", lambda: "The job nightly has not written 'jobs.nightly'" in alarms(), 30)
        rig.wait("the log to be purged", lambda: first_sequences() == list(log.ends().values()), 30)
    assert "nightly" in said("jobs", "--state", str(rig.state))
    said("jobs", "--forget", "nightly", "--state", str(rig.state))
    rig.wait("no alarm", lambda: not alarms().strip(), 20)


def test_slices_that_cannot_be_read_are_told_by_every_node(rig: Rig) -> None:
    with ControlBus(rig.installation) as bus:
        good = bus.entry(SLICES)
        assert good is not None
        bus.put_raw("slices", b"{{")
        try:
            for name in NODES:
                rig.wait(
                    "the alarm", lambda name=name: "'slices' on the control bus" in (alarm_of(rig, name) or ""), 20
                )
        finally:
            bus.put_raw("slices", good.value)
        for name in NODES:
            rig.wait("its end", lambda name=name: alarm_of(rig, name) is None, 20)
    settle(rig, fleet(rig, "after-damage", seconds=1))


def alarm_of(rig: Rig, name: str) -> str | None:
    said = rig.progress(name)
    return said.alarm if said is not None else None


@contextlib.contextmanager
def filled(disk: Path) -> Iterator[None]:
    ballast = disk / "ballast"
    try:
        with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(65_536))
        yield
    finally:
        ballast.unlink()
