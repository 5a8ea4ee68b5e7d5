"""The command line of a fleet: bad input is a sentence, and commands on standard input are obeyed."""

import asyncio
from pathlib import Path

import pytest
import typer
from nowhere import NOWHERE
from typer.testing import CliRunner

from tidegate.cli import fleet as command
from tidegate.devices.acknowledgements import AckFile
from tidegate.devices.fleet import Fleet
from tidegate.devices.fleet_plan import FleetPlan, is_deaf
from tidegate.devices.pattern import Pattern
from tidegate.model.errors import UserError


def app() -> typer.Typer:
    made = typer.Typer()
    made.command()(command.run)
    return made


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "Say how many devices"),
        (["--pattern", "0:1", "--devices", "4"], "Say how many devices"),
        (["--devices", "4"], "belong together"),
        (["--seconds", "4"], "belong together"),
        (["--pattern", "0-100"], "has the point '0-100'"),
        (["--pattern", "0:1000000"], "raise the limit"),
        (["--pattern", "0:1", "--prefix", "a/b"], "cannot be a topic level"),
        (["--pattern", "0:1", "--classes", "alarm:2"], "a share is above 0"),
        (["--pattern", "0:1"], "No running installation"),
    ],
)
def test_bad_input_is_one_sentence(tmp_path: Path, arguments: list[str], sentence: str) -> None:
    result = CliRunner().invoke(app(), ["--state", str(tmp_path), *arguments])
    assert isinstance(result.exception, UserError)
    assert sentence in str(result.exception)
    assert not (tmp_path / "acks").exists()


@pytest.mark.parametrize(("share", "devices", "deaf"), [(0.0, 100, 0), (0.1, 100, 10), (0.25, 8, 2), (1.0, 7, 7)])
def test_the_deaf_are_spread_evenly(share: float, devices: int, deaf: int) -> None:
    indices = [index for index in range(devices) if is_deaf(index, share)]
    assert len(indices) == deaf
    assert len([index for index in indices if index < devices // 2]) == pytest.approx(deaf / 2, abs=1)


def test_commands_are_obeyed_and_others_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with AckFile(tmp_path / "a.acks") as file:
        plan = FleetPlan(pattern=Pattern.constant(1, 1), boot=0, endless=True)
        fleet = Fleet(plan, NOWHERE, file, lambda name: (name, "word"))
        for line in ("pattern 0:2,30:8 ", "dance", "pattern 0:x"):
            command._obey(fleet, line)
        assert fleet._pattern == Pattern.parse("0:2,30:8")
        assert not fleet._stopped
        command._obey(fleet, "quit\n")
        assert fleet._stopped
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2
    assert "'dance'" in said[0]
    assert "'0:x'" in said[1]


def test_what_nobody_acknowledges_is_counted_and_the_late_connections_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate.devices.fleet.DRAIN_S", 0.1)
    monkeypatch.setattr("tidegate.devices.fleet.CONNECT_S_MAX", 0.2)
    with AckFile(tmp_path / "a.acks") as file:
        plan = FleetPlan(pattern=Pattern.constant(3, 0.6), boot=0, interval_s=0.05)
        fleet = Fleet(plan, NOWHERE, file, lambda name: (name, "word"))
        summary = asyncio.run(fleet.run())
    assert summary.samples > 3
    assert (summary.acked, summary.readings) == (0, 0)
    assert summary.sent <= 3 * 8
    assert not summary.is_complete
    assert not summary.kept_schedule
    assert "127.0.0.1:1 was lost" in fleet.last_failure


def simulated(plan: FleetPlan, directory: Path, *, stop_after_s: float | None = None) -> float:
    """How long a fleet takes whose devices nobody acknowledges."""

    async def run() -> float:
        with AckFile(directory / "a.acks") as file:
            fleet, loop = Fleet(plan, NOWHERE, file, lambda name: (name, "word")), asyncio.get_running_loop()
            if stop_after_s is not None:
                loop.call_later(stop_after_s, fleet.stop)
            began_s = loop.time()
            await fleet.run()
            return loop.time() - began_s

    return asyncio.run(run())


def test_what_deaf_devices_published_may_be_held_so_they_wait_longer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate.devices.fleet.DRAIN_S", 0.05)
    monkeypatch.setattr("tidegate.devices.fleet.DEAF_DRAIN_S", 0.6)
    plan = FleetPlan(pattern=Pattern.constant(2, 0.1), boot=0, interval_s=0.05, deaf=1.0)
    assert simulated(plan, tmp_path) > 0.6


def test_a_fleet_that_is_stopped_does_not_wait_for_what_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither where the stop comes while devices are there, nor where they are leaving already."""
    monkeypatch.setattr("tidegate.devices.fleet.STOP_DRAIN_S", 0.1)
    monkeypatch.setattr("tidegate.devices.fleet.CLOSE_TIMEOUT_S", 0.1)
    for pattern in (Pattern.constant(2, 60), Pattern.constant(2, 0.1)):
        plan = FleetPlan(pattern=pattern, boot=0, interval_s=0.05, deaf=1.0)
        assert simulated(plan, tmp_path, stop_after_s=0.3) < 5
