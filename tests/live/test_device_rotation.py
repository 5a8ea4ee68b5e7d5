"""Rotations that are disturbed: interrupted, given again, beside others, and without a place for the passwords."""

import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.bus import ControlBus
from support.device_command import Command, device_command

from tidegate.bus import register
from tidegate.bus.documents import REGISTER, REVOKED
from tidegate.model.installation import Installation
from tidegate.model.registration import Entry, shard_of

pytestmark = pytest.mark.live
NAMES = [f"pump-{number}" for number in range(40)]


@pytest.fixture
def device(
    installation: Installation, tmp_path: Path, capsys: pytest.CaptureFixture[str], state: Path
) -> Iterator[Command]:
    with device_command(installation, state, tmp_path, capsys) as command:
        yield command


def given(tmp_path: Path) -> Path:
    path = tmp_path / "names.txt"
    path.write_text("\n".join(NAMES))
    return path


def passwords(path: Path) -> dict[str, str]:
    with path.open(newline="") as file:
        return {row["name"]: row["password"] for row in csv.DictReader(file)}


def disturb(monkeypatch: pytest.MonkeyPatch, after: int, disturbance: Callable[[], None]) -> None:
    """Something happens when so many shards of the register are changed."""
    done = []
    change_shard = register._change_shard

    def changed(*arguments: Any) -> dict[str, Entry]:
        done.append(arguments)
        if len(done) == after:
            disturbance()
        return change_shard(*arguments)

    monkeypatch.setattr(register, "_change_shard", changed)


def generations(device: Command) -> dict[str, int]:
    return {name: entry.generation for name, entry in register.entries(device.bus, NAMES).items()}


def interrupt() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("second", ["new.csv", "another.csv"])
def test_a_rotation_that_was_interrupted_and_is_given_again_is_one_rotation(
    device: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    second: str,
) -> None:
    names, first, again = given(tmp_path), tmp_path / "first.csv", tmp_path / second
    device("add", "--from", str(names), "--out", str(first))
    with monkeypatch.context() as patch:
        disturb(patch, 10, interrupt)
        device("rotate", "--from", str(names), "--out", str(tmp_path / "new.csv"), status=130)
    assert set(generations(device).values()) == {1, 2}
    device("rotate", "--from", str(names), "--out", str(again), "--force")
    assert set(generations(device).values()) == {2}
    for path, generation in ((first, 1), (tmp_path / "new.csv", 2), (again, 2)):
        assert {device.proves(*one) for one in passwords(path).items()} == {generation}
    device("rotate", "--from", str(names), "--out", str(again), "--force")
    assert set(generations(device).values()) == {3}, "what was handed out is another rotation's business"
    assert not list(device.state.glob("rotating-*"))


def test_without_a_place_for_the_passwords_nothing_is_rotated(
    device: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = given(tmp_path)
    device("add", "--from", str(names), "--out", str(tmp_path / "first.csv"))

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("tidegate.bus.issued.write_private_file", full)
        said = device("rotate", "--from", str(names), "--out", str(tmp_path / "new.csv"), status=2)
    assert "cannot be written (No space left on device)" in said
    assert set(generations(device).values()) == {1}
    device("rotate", "--from", str(names), "--out", str(tmp_path / "another.csv"))
    assert set(generations(device).values()) == {2}


def test_who_is_revoked_while_others_are_rotated_stays_so(
    device: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    installation: Installation,
) -> None:
    names, other = given(tmp_path), ControlBus(installation)
    device("add", "--from", str(names), "--out", str(tmp_path / "first.csv"))
    last = NAMES[-1]
    with monkeypatch.context() as patch:
        disturb(patch, 2, lambda: other.put(REVOKED, {last: Entry().revoked(1.0).revocation}, shard_of(last)))
        said = device("rotate", "--from", str(names), "--out", str(tmp_path / "new.csv"), status=1)
    other.close()
    assert f"Revoked meanwhile, and still so: {last}." in said
    entries = register.entries(device.bus, NAMES)
    assert [name for name, entry in entries.items() if entry.is_revoked] == [last]


def test_a_rotation_beside_others_who_are_faster_is_one_rotation(
    device: Command,
    monkeypatch: pytest.MonkeyPatch,
    installation: Installation,
) -> None:
    """The register is written; what is revoked in the same shard was changed meanwhile, and is read again."""
    other, put = ControlBus(installation), register._put
    late = ["somebody"]

    def beaten(bus: Any, document: Any, now: Any, shard: str, before: Any) -> bool:
        if document is REVOKED and late:
            other.put(REVOKED, {late.pop(): Entry().revoked(1.0).revocation}, shard)
        return put(bus, document, now, shard, before)

    device("add", "pump-1")
    with monkeypatch.context() as patch:
        patch.setattr(register, "_put", beaten)
        device("rotate", "pump-1")
    entry = register.entries(device.bus, ["pump-1"])["pump-1"]
    assert entry.generation == 2
    assert entry.revocation is not None
    assert (entry.revocation.generation_min, entry.revocation.generation_min_before) == (2, 1)
    assert other.get(REGISTER, shard_of("pump-1")) is not None
    assert set(other.get(REVOKED, shard_of("pump-1")) or {}) == {"pump-1", "somebody"}
    other.close()
