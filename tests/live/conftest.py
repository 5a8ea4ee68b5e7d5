"""What live tests share, because starting it takes the longest: brokers, a gateway, and nodes with Spark.

A test that needs *some* running system takes these and keeps apart by its own devices, topics and names. A test that
kills, fills or configures a broker starts its own.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import msgspec
import psutil
import pytest
from support import bus, processes
from support.gateways import STRICT, Running
from support.readings import TOKEN
from support.rigs import NODES, SETTINGS

from tidegate.brokers.nats.embedded import EmbeddedBrokers
from tidegate.brokers.settings import BrokerSettings
from tidegate.model.installation import Installation
from tidegate_bench.rig import Rig

GONE_S_MAX = 30.0


@pytest.fixture(scope="session", autouse=True)
def _nothing_survives() -> Iterator[None]:
    """First to begin and last to end: no process that a live test started is left, not even one with another parent."""
    mark = processes.mark()
    yield
    _, alive = psutil.wait_procs(processes.marked(mark), timeout=GONE_S_MAX)
    assert [process.cmdline() for process in alive] == []


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
    """The state directory that a command is told to find the shared brokers by."""
    directory = tmp_path_factory.mktemp("told")
    installation.save(directory)
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
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """An installation of its own with two processing nodes."""
    with Rig(BrokerSettings(slices=4), tmp_path_factory.mktemp("rig")) as running:
        for name in NODES:
            running.start_node(name, **SETTINGS)
        for name in NODES:
            running.wait(f"node {name}", partial(_lives, running, name))
        running.wait("every slice to have an owner", lambda: all(h.owner for h in running.assignments.current().holds))
        yield running


def _lives(rig: Rig, name: str) -> bool:
    return name in rig.assignments.alive()
