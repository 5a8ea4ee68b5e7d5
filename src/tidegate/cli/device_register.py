"""The control bus as the device commands need it: settled before, changed with progress, copied afterwards."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import typer

from tidegate.bus import identity, register
from tidegate.bus.client import Bus
from tidegate.bus.installation import load_installation
from tidegate.model.credentials import Keys
from tidegate.model.errors import TidegateError
from tidegate.model.installation import Installation
from tidegate.model.registration import Entry
from tidegate.report.progress import Progress


@contextmanager
def opened(state: Path) -> Iterator[tuple[Bus, Keys, Installation]]:
    """The bus, with keys and revocations as they have to be there."""
    installation = load_installation(state)
    with Bus(installation.control_urls) as bus:
        yield bus, identity.settle(bus, state, _warn), installation


def _warn(sentence: str) -> None:
    typer.echo(f"tidegate: {sentence}", err=True)


def revoke_on_bus(bus: Bus, state: Path, names: Sequence[str]) -> TidegateError | None:
    """On the bus, whatever is wrong with the state directory; what that was."""
    now_s = time.time()
    trouble = _trouble(lambda: identity.settle_revoked(bus, state, _warn))
    changed(bus, names, lambda entry: entry.revoked(now_s), "revoking")
    return _trouble(lambda: identity.copy_revoked(bus, state)) or trouble


def _trouble(step: Callable[[], None]) -> TidegateError | None:
    try:
        step()
    except TidegateError as error:
        return error
    return None


def changed(bus: Bus, names: Sequence[str], step: Callable[[Entry], Entry], doing: str) -> dict[str, Entry]:
    with Progress(doing) as progress:
        return register.change(bus, names, step, lambda done, all_: progress.update(f"{done:,} of {all_:,}"))
