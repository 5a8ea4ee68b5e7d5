"""What all parts of the benchmark stand on: one installation with its brokers and bus, and who starts servers there."""

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from tidegate.brokers.nats.embedded import EmbeddedBrokers
from tidegate.brokers.settings import BrokerSettings
from tidegate.model.installation import Installation
from tidegate_bench.rig.servers import Starter, starter

SLICES = 4


class Grounds(msgspec.Struct, frozen=True):
    directory: Path
    state: Path  # of the installation
    installation: Installation
    servers: Starter


@contextlib.contextmanager
def grounds(out: Path | None) -> Iterator[Grounds]:
    with contextlib.ExitStack() as opened:
        place = out or Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="tidegate-identity-")))
        directory = place.absolute()
        directory.chmod(0o711)  # mosquitto, started by root, gives its rights up
        state = directory / "brokers"
        brokers = opened.enter_context(EmbeddedBrokers(state, BrokerSettings(nodes=1, slices=SLICES)))
        assert brokers.installation is not None
        yield Grounds(directory, state, brokers.installation, opened.enter_context(starter(directory)))
