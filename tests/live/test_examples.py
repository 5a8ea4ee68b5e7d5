"""The examples for devices, as a person runs them: with what ``tidegate device add`` prints, and nothing else."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.gateways import STRICT, Running
from support.log import Log
from support.processes import said
from support.waiting import until

from tidegate.gateway.identity.settings import IdentitySettings
from tidegate.model.installation import Installation

pytestmark = pytest.mark.live
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def judging(installation: Installation, state: Path) -> Iterator[Running]:
    with Running(installation, STRICT, identity=IdentitySettings()) as gateway:
        yield gateway


def run(example: str, judging: Running, state: Path, name: str, directory: Path) -> str:
    printed = said("device", "add", name, "--state", str(state)).splitlines()
    password = next(line for line in printed if line.startswith("password: ")).removeprefix("password: ")
    host, port = judging.address
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / example), f"{host}:{port}", name],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        cwd=directory,
        env={**os.environ, "DEVICE_PASSWORD": password},
    )
    return done.stdout


@pytest.mark.parametrize(
    ("example", "name", "says"),
    [("send_a_reading.py", "pump-7", "acknowledged: True"), ("device.py", "pump-8", "all acknowledged: True")],
)
def test_a_device_sends_its_readings(
    judging: Running, state: Path, tmp_path: Path, example: str, name: str, says: str
) -> None:
    assert run(example, judging, state, name, tmp_path).startswith(says)
    with Log(judging.here) as log:
        until(lambda: any(device == name for device, _ in log.readings()))


@pytest.mark.skipif(shutil.which("cc") is None, reason="left out: no C compiler is installed")
def test_advice_is_followed_in_c(tmp_path: Path) -> None:
    program = tmp_path / "advice"
    flags = ["-Wall", "-Wextra", "-Werror", "-o"]
    subprocess.run(["cc", *flags, str(program), str(EXAMPLES / "advice.c")], check=True, timeout=60)
    advice = '{"interval_s": 3, "lifetime_s": 6}'
    done = subprocess.run([program, advice], capture_output=True, text=True, check=True, timeout=10)
    assert [line.split("every ")[1] for line in done.stdout.splitlines()] == ["3 s", "3 s", "0.5 s", "0.5 s"]
