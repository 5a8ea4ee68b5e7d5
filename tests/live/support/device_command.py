"""The command ``tidegate device`` with a state directory of its own, and the control bus behind it."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.bus import ControlBus, forget_all
from tidegate.bus import register
from tidegate.bus.documents import IDENTITY_KEYS
from tidegate.cli.main import run
from tidegate.model.credentials import Keys, verify
from tidegate.model.installation import Installation


class Command:
    """The command ``tidegate device``, and the bus behind it."""

    def __init__(self, here: Installation, state: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.bus, self.state, self._capsys = ControlBus(here), state, capsys

    def __call__(self, *arguments: str, status: int = 0) -> str:
        """What it prints; on standard error where it fails."""
        self._capsys.readouterr()
        found = run(["device", *arguments, *([] if arguments[0] == "hash" else ["--state", str(self.state)])])
        said = self._capsys.readouterr()
        assert found == status, said
        return said.err if status else said.out

    def json(self, *arguments: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self(*arguments, "--json"))
        return found

    @property
    def keys(self) -> Keys:
        keys = self.bus.get(IDENTITY_KEYS)
        assert keys is not None
        return keys

    def proves(self, name: str, password: str) -> int | None:
        """The generation of a password, if gateways would take it now."""
        proof = verify(self.keys, name, password.encode())
        entry = register.entries(self.bus, [name])[name]
        lowest = 1 if entry.revocation is None else entry.revocation.lowest(time.time())
        if proof is None or entry.is_revoked or proof.generation < lowest:
            return None
        return proof.generation


@contextmanager
def device_command(
    here: Installation, state: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Iterator[Command]:
    """Beside an installation that has forgotten everybody."""
    forget_all(here)
    own = tmp_path / "state"
    own.mkdir()
    (own / "installation.json").write_bytes((state / "installation.json").read_bytes())
    command = Command(here, own, capsys)
    yield command
    command.bus.close()
