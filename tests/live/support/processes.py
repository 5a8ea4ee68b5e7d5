"""Processes that tests start: our commands, everything below a process, and what of it is left at the end."""

import os
import subprocess
import sys
import uuid
from pathlib import Path

import psutil

TIDEGATE = (sys.executable, "-m", "tidegate.cli.main")
# A fleet that knows rates, and one that behaves like devices.
RATE_FLEET = (sys.executable, "-m", "tidegate_bench.rig.steady_load")
DEVICE_FLEET = (*TIDEGATE, "fleet")
# Without the command line's other parts, which take longer to import than a gateway takes to start.
GATEWAY = (sys.executable, "-c", "import typer; from tidegate.cli.gateway import run; typer.run(run)")
MARK = "TIDEGATE_TEST_RUN"
TRACKER = "multiprocessing.resource_tracker"


def tidegate(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A command to its end, whatever that is."""
    return subprocess.run(
        [*TIDEGATE, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, **environment},
    )


def said(*arguments: str) -> str:
    """What a command that ends well prints."""
    done = tidegate(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def family(pid: int) -> list[psutil.Process]:
    """A process and all that it started."""
    parent = psutil.Process(pid)
    return [parent, *parent.children(recursive=True)]


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def mark() -> str:
    """Every process that is started from now on can be told by its environment, whoever adopted it since."""
    os.environ[MARK] = uuid.uuid4().hex
    return os.environ[MARK]


def marked(mark: str) -> list[psutil.Process]:
    """Those that run now, other than this one and the tracker that Python itself runs beside it."""
    return [process for process in psutil.process_iter() if process.pid != os.getpid() and _has(process, mark)]


def _has(process: psutil.Process, mark: str) -> bool:
    try:
        if process.environ().get(MARK) != mark or process.status() == psutil.STATUS_ZOMBIE:
            return False
        return not (process.ppid() == os.getpid() and TRACKER in " ".join(process.cmdline()))
    except psutil.Error:
        return False
