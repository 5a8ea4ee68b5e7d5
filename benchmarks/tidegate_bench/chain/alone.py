"""What parts of the chain do alone, with the same load, as fast as it goes: devices send what their windows take.

The broker gets the same readings on the same topics as in the chain and keeps them in its slices; nobody reads them.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tidegate.brokers.nats.embedded import EmbeddedBrokers
from tidegate.machine.ports import HOST
from tidegate.model.installation import Installation
from tidegate.report.progress import Progress
from tidegate_bench.chain.site import Configuration, started_chain, started_load
from tidegate_bench.rig.children import Child

LOAD_ALONE, BROKER_ALONE, BEFORE_TABLES = "load alone", "broker alone", "gateway and broker"
ONE_BROKER = Configuration(brokers=1, durability="process-kill")


def measured(progress: Progress, seconds: float, rounds: int) -> list[dict[str, Any]]:
    ways: dict[str, Callable[[], AbstractContextManager[Child]]] = {
        LOAD_ALONE: _load_alone,
        BROKER_ALONE: _broker_alone,
        BEFORE_TABLES: lambda: _before_tables(progress),
    }
    rows = []
    for part, way in ways.items():
        progress.step(f"As fast as it goes: {part}.")
        with way() as load:
            for number in range(rounds):
                load.tell(json.dumps({"rate": 0, "seconds": seconds}))
                rows.append({"part": part, "round": number, **load.answer()})
    return rows


@contextmanager
def _load_alone() -> Iterator[Child]:
    with (
        _broker() as (state, _),
        Child("chain.acknowledging") as acknowledging,
        started_load(state, (HOST, acknowledging.answer()["port"])) as load,
    ):
        yield load


@contextmanager
def _broker_alone() -> Iterator[Child]:
    with _broker() as (state, installation), started_load(state, installation.mqtt_addresses[0]) as load:
        yield load


@contextmanager
def _before_tables(progress: Progress) -> Iterator[Child]:
    with (
        started_chain(ONE_BROKER, 0, None, progress) as chain,
        started_load(chain.state, chain.installation.gateway_mqtt) as load,
    ):
        yield load


@contextmanager
def _broker() -> Iterator[tuple[Path, Installation]]:
    with (
        TemporaryDirectory(prefix="tidegate-chain-") as directory,
        EmbeddedBrokers(Path(directory), ONE_BROKER.settings()) as brokers,
    ):
        assert brokers.installation is not None
        yield Path(directory), brokers.installation
