"""One installation with two real processing nodes for all tests that need Spark: starting them takes the longest."""

from collections.abc import Iterator
from functools import partial

import pytest

from tidegate.brokers.settings import BrokerSettings
from tidegate_bench.rig.installation import Rig

NODES = ("left", "right")
SETTINGS = {"trigger_ms": "100", "lease_s": "2", "window_s": "10", "snapshot_s": "1", "purge_s": "2"}


@pytest.fixture(scope="session")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    with Rig(BrokerSettings(slices=4), tmp_path_factory.mktemp("rig")) as running:
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
