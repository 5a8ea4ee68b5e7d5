"""From the kind of broker that an installation names to the adapter that speaks to it.

Adapters are loaded when they are asked for: a part that needs one kind does not carry the libraries of all.
"""

import importlib
from pathlib import Path
from typing import cast

from tidegate.brokers.port import Adapter, Brokers, EmbeddedServers, SlicedLog
from tidegate.brokers.settings import BrokerSettings
from tidegate.model.errors import UserError
from tidegate.model.installation import Installation, LogAddress

TIMEOUT_S = 5.0
# Kind -> module that has the functions of ``port.Adapter``. This is where a new broker is added.
ADAPTERS = {"nats": "tidegate.brokers.nats.adapter"}
EMBEDDED_KIND = "nats"


def open_brokers(installation: Installation, *, name: str = "tidegate", timeout_s: float = TIMEOUT_S) -> Brokers:
    return _adapter(installation.broker_kind).open_brokers(installation, name=name, timeout_s=timeout_s)


def open_log(address: LogAddress, *, name: str = "tidegate", timeout_s: float = TIMEOUT_S) -> SlicedLog:
    return _adapter(address.kind).open_log(address, name=name, timeout_s=timeout_s)


def address_of_log(installation: Installation) -> LogAddress:
    if installation.log is None:
        raise UserError(
            f"The brokers of this installation ({installation.broker_kind}) keep no log, so processing nodes have "
            "nothing to read: start brokers that keep one."
        )
    return installation.log


def embedded_servers(state_directory: Path, settings: BrokerSettings) -> EmbeddedServers:
    """The servers that Tidegate brings along."""
    return _adapter(EMBEDDED_KIND).embedded(state_directory, settings)


def _adapter(kind: str) -> Adapter:
    if kind not in ADAPTERS:
        raise UserError(
            f"There is no adapter for brokers of the kind {kind!r}: choose one of {', '.join(ADAPTERS)}.",
            where="installation.json",
            expected=tuple(ADAPTERS),
            found=kind,
        )
    return cast(Adapter, importlib.import_module(ADAPTERS[kind]))
