"""What live tests share, because starting it takes the longest: brokers, a gateway, and nodes with Spark.

A test that needs *some* running system takes these and keeps apart by its own devices, topics and names. A test that
kills, fills or configures a broker starts its own.
"""

import contextlib
import shlex
import signal
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import msgspec
import psutil
import pytest
from support import bus, credentials, processes
from support.gateways import STRICT, Running
from support.readings import TOKEN
from support.rigs import NODES, SETTINGS

from tidegate.brokers.nats.embedded import EmbeddedBrokers
from tidegate.brokers.settings import BrokerSettings
from tidegate.bus.installation import save_installation
from tidegate.model.installation import Installation
from tidegate_bench.rig.installation import Rig

GONE_S_MAX = 30.0
DISK_BYTES = 256 * 1024**2


@pytest.fixture(scope="session", autouse=True)
def _nothing_survives() -> Iterator[None]:
    """First to begin and last to end: no process that a live test started is left, not even one with another parent."""
    mark = processes.mark()
    yield
    _, alive = psutil.wait_procs(processes.marked(mark), timeout=GONE_S_MAX)
    names = []
    for process in alive:
        with contextlib.suppress(psutil.NoSuchProcess):  # it has just gone after all
            names.append(f"{process.pid}: {shlex.join(process.cmdline())}")
            process.kill()
    assert names == []


@pytest.fixture(scope="session", autouse=True)
def _interrupts_are_heard() -> None:
    """A shell that runs the tests in the background has them ignore SIGINT, and every process below them as well."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def shared_brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBrokers]:
    with EmbeddedBrokers(tmp_path_factory.mktemp("shared"), BrokerSettings(nodes=1, slices=2)) as running:
        yield running


@pytest.fixture(scope="session")
def shared_installation(shared_brokers: EmbeddedBrokers) -> Installation:
    assert shared_brokers.installation is not None
    return msgspec.structs.replace(shared_brokers.installation, token=TOKEN)


@pytest.fixture(scope="module")
def installation(shared_installation: Installation) -> Iterator[Installation]:
    """The shared brokers; what a module put on their control bus goes with it."""
    yield shared_installation
    bus.forget_all(shared_installation)


@pytest.fixture(scope="module")
def state(installation: Installation, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The state directory that a command is told to find the shared brokers by. Their bus has keys then."""
    directory = tmp_path_factory.mktemp("told")
    save_installation(installation, directory)
    credentials.settled(installation, directory)
    return directory


@pytest.fixture(scope="session")
def shared_gateway(shared_installation: Installation) -> Iterator[Running]:
    with Running(shared_installation, STRICT) as gateway:
        yield gateway


@pytest.fixture
def running(shared_gateway: Running, installation: Installation) -> Iterator[Running]:
    """The shared gateway; what went wrong in it is the fault of the test that ran."""
    yield shared_gateway
    shared_gateway.assert_no_faults()


@pytest.fixture(scope="session")
def rig_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where the rig lives. Its tables have a disk of their own, where that may be mounted: a test fills it."""
    state = tmp_path_factory.mktemp("rig")
    tables = state / "tables"
    tables.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(tables)]
    mounted = subprocess.run(mounting, capture_output=True, check=False).returncode == 0
    yield state
    if mounted:
        subprocess.run(["umount", "--lazy", str(tables)], check=True)


@pytest.fixture
def small_disk(rig_state: Path) -> Path:
    if not (rig_state / "tables").is_mount():
        pytest.skip("left out: mounting a small disk needs root")
    return rig_state / "tables"


@pytest.fixture(scope="session")
def rig(rig_state: Path) -> Iterator[Rig]:
    """An installation of its own with two processing nodes."""
    with Rig(BrokerSettings(slices=4), rig_state) as running:
        for name in NODES:
            running.start_node(name, **SETTINGS)
        for name in NODES:
            running.wait(f"node {name}", partial(_lives, running, name))
        running.wait(
            "every slice to have an owner", lambda: all(h.owner for h in running.assignments.current().ownerships)
        )
        yield running


def _lives(rig: Rig, name: str) -> bool:
    return name in rig.assignments.alive()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests with the rig come last, one after the other: no other test has to share the machine with its Spark."""
    items.sort(key=lambda item: "rig" in getattr(item, "fixturenames", ()))
