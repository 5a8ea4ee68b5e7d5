"""``tidegate device`` against a real control bus: passwords issued, taken back, rotated, never lost with the bus."""

import csv
import io
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.bus import ControlBus, forget_all
from support.device_command import Command, device_command

from tidegate.bus import identity, register
from tidegate.bus.documents import IDENTITY_KEYS, REGISTER, REVOCATIONS, REVOKED
from tidegate.gateway.identity.hashing import parsed
from tidegate.model.credentials import Proof, verify
from tidegate.model.errors import DamagedDocumentError
from tidegate.model.installation import Installation
from tidegate.model.registration import Entry, shard_of

pytestmark = pytest.mark.live


@pytest.fixture
def device(
    installation: Installation, tmp_path: Path, capsys: pytest.CaptureFixture[str], state: Path
) -> Iterator[Command]:
    with device_command(installation, state, tmp_path, capsys) as command:
        yield command


def rows(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_text())))


# -- adding


def test_one_device_is_told_all_it_takes_to_connect(device: Command) -> None:
    said = device("add", "pump-1", "--note", "line 4")
    password = next(line for line in said.splitlines() if line.startswith("password: ")).removeprefix("password: ")
    assert verify(device.keys, "pump-1", password.encode()) == Proof(device.keys.current.id, 1)
    assert f"-u pump-1 -P {password} -i pump-1 -q 1 -t telemetry/pump-1" in said
    assert said.startswith("pump-1 is added: MQTT at 127.0.0.1:")
    assert device("credentials", "pump-1") == f"user: pump-1\npassword: {password}\n"
    assert device.json("credentials", "pump-1")["password"] == password
    assert password in device("add", "pump-1"), "who was added before keeps the same one"
    assert device.json("show", "pump-1")["note"] == "line 4"


def test_many_go_into_a_file_that_only_its_owner_may_read(device: Command, tmp_path: Path) -> None:
    out = tmp_path / "pumps.csv"
    names = tmp_path / "names.txt"
    names.write_text("# pumps\na\nb\r\n\n  c\n")
    said = device("add", "x", "--from", str(names), "--count", "2", "--prefix", "p", "--out", str(out))
    assert said == f"6 devices are added: {out}, readable by you only, has the passwords.\n"
    assert [row["name"] for row in rows(out)] == ["x", "a", "b", "c", "p-000000", "p-000001"]
    assert all(device.proves(row["user"], row["password"]) == 1 for row in rows(out))
    assert out.stat().st_mode & 0o777 == 0o600
    new = tmp_path / "new.csv"
    device("rotate", "--from", str(out), "--out", str(new))
    assert [(row["name"], device.proves(row["name"], row["password"])) for row in rows(new)] == [
        (row["name"], 2) for row in rows(out)
    ]
    before = out.read_bytes()
    assert "exists: name another file, or overwrite it with --force" in device("add", "y", "--out", str(out), status=2)
    assert out.read_bytes() == before
    assert register.entries(device.bus, ["y"])["y"] == Entry(), "nothing was done"
    device("add", "y", "--out", str(out), "--force")
    assert [row["name"] for row in rows(out)] == ["y"]


def test_a_hundred_thousand_devices_take_seconds(device: Command, tmp_path: Path) -> None:
    out = tmp_path / "meters.csv"
    begun_s = time.monotonic()
    device("add", "--count", "100000", "--prefix", "meter", "--out", str(out))
    assert time.monotonic() - begun_s < 20
    found = rows(out)
    assert len(found) == 100_000
    assert all(device.proves(row["name"], row["password"]) == 1 for row in found[::20_000])
    assert len(device.json("list", "--prefix", "meter-0999")["devices"]) == 100


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["add"], "Which devices? Name them"),
        (["add", "a/b"], "Device name 'a/b' cannot be a topic level"),
        (["add", "a", "b"], "Where shall the passwords of 2 devices go? Name a file with --out."),
        (["add", "--count", "3"], "--count and --prefix belong together"),
        (["add", "--from", "nowhere.txt"], "--from nowhere.txt does not exist"),
        (["add", "a", "--out", "no/where/x.csv"], "--out no/where/x.csv cannot be written: name a file in a directory"),
        (["add", "a", "--out", "pyproject.toml/x.csv"], "x.csv cannot be written: name a file in a directory"),
        (["add", "a", "--out", "x" * 300], "cannot be written (File name too long): name another file"),
        (["rotate", "--finish"], "--finish belongs to --installation-key"),
        (["rotate", "a", "--installation-key"], "--installation-key is about all devices"),
        (["rotate", "--installation-key", "--finish"], "No key is being rotated"),
        (["add", "\udcff"], r"The argument '\udcff' is no text in UTF-8"),
        (["add", "a", "--note", "\udcff"], r"The argument '\udcff' is no text in UTF-8"),
        (["add", "a", "--out", "no/\udcff.csv"], r"The argument 'no/\udcff.csv' is no text in UTF-8"),
        (["show", "#"], "Device name '#' cannot be a topic level"),
        (["hash", "a:b"], "a:b cannot stand in a password file"),
    ],
)
def test_a_mistake_is_one_sentence(device: Command, arguments: list[str], sentence: str) -> None:
    said = device(*arguments, status=2)
    assert sentence in said
    assert said.count("\n") == 1


def test_a_bad_name_in_a_file_has_its_line(device: Command, tmp_path: Path) -> None:
    names = tmp_path / "names.txt"
    names.write_text("a\nb/c\n")
    assert f"{names}, line 2: Device name 'b/c'" in device("revoke", "--from", str(names), status=2)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        pytest.param("name;user;password\na;a;tg1.k.1.S3CRET\n", "line 1 looks like a row", id="semicolons"),
        pytest.param("a;a;tg1.k.1.S3CRET\n", "line 1 looks like a row with a password", id="no names of columns"),
        pytest.param("x\na\ta\tS3CRET\n", "line 2 looks like a row with a password", id="the password of a broker"),
        pytest.param("name,user,password\ra,a,tg1.k.1.S3CRET\r", "looks like a row", id="lines of other times"),
        pytest.param("name,user,password\na\rb,a,S3CRET\n", "is no row of name,user,password", id="a bare return"),
        pytest.param("name,user,password\n" + "a" * 200_000 + ",a,b\n", "is no row of", id="a field that is too long"),
        pytest.param("name,user,password\na\n", "line 2 is no row of name,user,password", id="a column only"),
        pytest.param("name,user,password\na\0b,a,S3CRET\n", "line 2", id="a zero"),
    ],
)
def test_a_table_that_was_saved_anew_is_not_taken_for_names(
    device: Command, tmp_path: Path, content: str, sentence: str
) -> None:
    names = tmp_path / "names.csv"
    names.write_bytes(content.encode())
    said = device("add", "--from", str(names), "--out", str(tmp_path / "out.csv"), status=2)
    assert sentence in said
    assert "S3CRET" not in said
    assert said.count("\n") == 1
    assert not list(register.listed(device.bus))


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("\ufeffname,user,password\npump;1,pump;1,x\n", id="a mark at its beginning"),
        pytest.param('"name","user","password"\r\n"pump;1","pump;1","x"\r\n', id="quotes everywhere"),
        pytest.param("\ufeffpump;1\n# a;a;a\n", id="names with a mark"),
    ],
)
def test_a_table_that_was_saved_anew_and_still_says_names_is_read(
    device: Command, tmp_path: Path, content: str
) -> None:
    names, out = tmp_path / "names.csv", tmp_path / "out.csv"
    names.write_bytes(content.encode())
    device("add", "--from", str(names), "--out", str(out))
    assert [row["name"] for row in rows(out)] == ["pump;1"]


def test_what_was_written_is_read_again_as_it_is(device: Command, tmp_path: Path) -> None:
    out, again = tmp_path / "out.csv", tmp_path / "again.csv"
    device("add", 'a,"b', " c ", "d;d;", "--out", str(out))
    device("add", "--from", str(out), "--out", str(again))
    assert again.read_bytes() == out.read_bytes()


@pytest.mark.parametrize("kind", ["a pipe", "a link", "a link to nowhere"])
def test_passwords_go_into_a_file_of_their_own_alone(device: Command, tmp_path: Path, kind: str) -> None:
    out, target = tmp_path / "out.csv", tmp_path / "target.csv"
    if kind == "a pipe":
        os.mkfifo(out)
    else:
        out.symlink_to(target)
    if kind == "a link":
        target.write_text("before")
    before = out.lstat().st_ino
    assert "is a device, a pipe or a link" in device("add", "a", "--out", str(out), "--force", status=2)
    assert out.lstat().st_ino == before
    assert not target.exists() or target.read_text() == "before"


def test_a_state_directory_that_is_none_is_said(device: Command, tmp_path: Path) -> None:
    device.state = tmp_path / "a-file"
    device.state.write_text("")
    assert "cannot be read (Not a directory): name the directory of an installation" in device("add", "a", status=2)


# -- taking back


def test_a_revoked_device_is_refused_until_it_is_added_again(device: Command) -> None:
    first = device.json("add", "pump-1")["devices"][0]["password"]
    assert device("revoke", "pump-1") == "pump-1 is revoked: gateways refuse and disconnect from now on.\n"
    assert device.proves("pump-1", first) is None
    assert "has no password" in device("credentials", "pump-1", status=2)
    assert "is revoked" in device("rotate", "pump-1", status=2)
    assert device.json("show", "pump-1")["revoked"]
    assert "revoked since" in device("list")
    second = device.json("add", "pump-1")["devices"][0]["password"]
    assert (device.proves("pump-1", first), device.proves("pump-1", second)) == (None, 2)


def test_who_watches_learns_which_shard_has_changed(device: Command) -> None:
    device("revoke", "a", "b")
    index = device.bus.get(REVOCATIONS)
    assert index is not None
    assert index.keys() == {shard_of("a"), shard_of("b")}
    for shard, revision in index.items():
        stored = device.bus.stored(REVOKED, shard)
        assert stored is not None
        assert stored.revision == revision
    device("revoke", "a")
    assert device.bus.get(REVOCATIONS) == index, "nothing new"
    device.bus.delete(REVOCATIONS)
    device("revoke", "a")
    assert device.bus.get(REVOCATIONS) == index, "a word that was never said is said by the next command"


def test_a_rotation_has_a_grace(device: Command) -> None:
    old = device.json("add", "pump-1")["devices"][0]["password"]
    new = device.json("rotate", "pump-1", "--grace", "3600")["devices"][0]["password"]
    assert (device.proves("pump-1", old), device.proves("pump-1", new)) == (1, 2)
    assert "passwords of generation 1 count until" in device("show", "pump-1")
    newest = device.json("rotate", "pump-1", "--grace", "0")["devices"][0]["password"]
    assert [device.proves("pump-1", one) for one in (old, new, newest)] == [None, None, 3]
    assert "passwords below generation 3 are refused" in device("show", "pump-1")


def test_the_key_of_the_installation_is_rotated_while_both_count(device: Command) -> None:
    old = device.json("add", "pump-1")["devices"][0]["password"]
    assert "count until it is finished" in device("rotate", "--installation-key")
    assert "is not finished" in device("rotate", "--installation-key", status=2)
    new = device.json("add", "pump-1")["devices"][0]["password"]
    assert old != new
    assert [device.proves("pump-1", one) for one in (old, new)] == [1, 1]
    assert "disconnected" in device("rotate", "--installation-key", "--finish")
    assert [device.proves("pump-1", one) for one in (old, new)] == [None, 1]


def test_who_was_never_added_has_a_password_and_can_be_revoked(device: Command) -> None:
    password = device.json("credentials", "from-the-factory")["password"]
    assert device.proves("from-the-factory", password) == 1
    assert "not registered" in device("show", "from-the-factory")
    device("revoke", "from-the-factory")
    assert device.proves("from-the-factory", password) is None


# -- a bus that is lost or damaged


def test_a_lost_bus_locks_nobody_out_and_lets_nobody_in(device: Command, installation: Installation) -> None:
    good, bad = (device.json("add", name)["devices"][0]["password"] for name in ("good", "bad"))
    device("revoke", "bad")
    keys = device.keys
    forget_all(installation)
    assert identity.settle(device.bus, device.state) == keys
    assert (device.proves("good", good), device.proves("bad", bad)) == (1, None)
    assert device.bus.get(REVOCATIONS) is not None
    assert device.json("add", "bad")["devices"][0]["generation"] == 2
    for name in ("identity.json", "revoked.json"):
        assert (device.state / name).stat().st_mode & 0o777 == 0o600


def test_a_bus_that_was_set_back_learns_what_it_has_forgotten_and_nothing_else(device: Command) -> None:
    device("revoke", "a", "b")
    forgotten = {name: device.bus.get(REVOKED, shard_of(name)) for name in ("a", "b")}
    device("add", "a")
    device.bus.delete(REVOKED, shard_of("b"))
    identity.settle(device.bus, device.state)
    found = register.entries(device.bus, ["a", "b"])
    assert found["b"].revocation == (forgotten["b"] or {})["b"]
    assert (found["a"].is_revoked, found["b"].is_revoked) == (False, True)


def test_a_bus_that_was_set_back_gets_the_newer_key_again(device: Command) -> None:
    device("add", "pump-1")
    backup = device.keys
    device("rotate", "--installation-key")
    new = device.json("add", "pump-1")["devices"][0]["password"]
    device("rotate", "--installation-key", "--finish")
    keys, copy = device.keys, (device.state / "identity.json").read_bytes()
    device.bus.put(IDENTITY_KEYS, backup)
    assert identity.settle(device.bus, device.state) == device.keys == keys
    assert (device.state / "identity.json").read_bytes() == copy
    assert device.proves("pump-1", new) == 1


def test_a_copy_that_is_older_than_the_bus_is_renewed(device: Command) -> None:
    device("add", "pump-1")
    copy = device.state / "identity.json"
    before = copy.read_bytes()
    device("rotate", "--installation-key")
    after = copy.read_bytes()
    copy.write_bytes(before)
    device("credentials", "pump-1")
    assert copy.read_bytes() == after != before


def test_damaged_documents_are_restored_from_their_copies(device: Command) -> None:
    password = device.json("add", "good")["devices"][0]["password"]
    device("revoke", "bad")
    for key in ("identity-keys", f"revoked.{shard_of('bad')}", "revocations"):
        device.bus.put_raw(key, b"{{")
    assert device.json("credentials", "good")["password"] == password
    assert device.json("show", "bad")["revoked"]
    assert device.bus.get(REVOCATIONS) is not None


def test_a_shard_of_which_there_is_no_copy_is_left_as_it_is_and_said(device: Command) -> None:
    """It must not become an empty one: that would let in whoever stood there."""
    device.bus.put_raw(f"revoked.{shard_of('thief')}", b"{oops")
    said: list[str] = []
    identity.settle(device.bus, device.state, said.append)
    device("add", "somebody")
    device("revoke", "somebody")
    entry = device.bus.entry(REVOKED, shard_of("thief"))
    assert entry is not None
    assert entry.value == b"{oops"
    assert len(said) == 1
    assert f"'revoked.{shard_of('thief')}' on the control bus is damaged, and {device.state}" in said[0]


@pytest.mark.parametrize("file", ["revoked.json", "identity.json"])
def test_a_revocation_counts_although_a_copy_is_damaged(device: Command, file: str) -> None:
    device("add", "pump-1")
    (device.state / file).write_bytes(b"{{")
    said = device("revoke", "pump-1", status=1 if file == "revoked.json" else 0)
    assert register.entries(device.bus, ["pump-1"])["pump-1"].is_revoked
    if file == "revoked.json":
        assert "The control bus has that" in said
        assert f"{device.state / file} is damaged" in said


def test_a_revocation_counts_although_the_disk_is_full(device: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("tidegate.machine.private_files.write_private_file", full)
        said = device("revoke", "thief", status=1)
    assert f"{device.state / 'revoked.json'} cannot be written (No space left on device): make room" in said
    assert said.count("\n") == 1
    assert register.entries(device.bus, ["thief"])["thief"].is_revoked
    device("revoke", "thief")
    assert b"thief" in (device.state / "revoked.json").read_bytes()


def test_a_register_that_cannot_be_read_is_said(device: Command) -> None:
    device.bus.put_raw(f"devices.{shard_of('a')}", b"{{")
    assert "delete it and add its devices again" in device("add", "a", status=1)
    with pytest.raises(DamagedDocumentError):
        device.bus.get(REGISTER, shard_of("a"))


def test_two_who_add_at_once_lose_nothing(device: Command, installation: Installation) -> None:
    """One shard, changed by somebody else between reading and writing."""
    names = [name for name in (f"d{number}" for number in range(4_000)) if shard_of(name) == "07"][:8]
    other = ControlBus(installation)

    def meddle(entry: Entry) -> Entry:
        if late:
            register.change(other, [late.pop()], lambda one: one.added(0.0))
        return entry.added(1.0)

    late = names[4:]
    register.change(device.bus, names[:4], meddle)
    other.close()
    assert all(entry.registered for entry in register.entries(device.bus, names).values())


# -- the password file


def test_a_line_for_the_password_file(device: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"s3cret \xc3\xa4\nmore\n")))
    name, _, text = device("hash", "analytics").strip().partition(":")
    assert name == "analytics"
    assert parsed(text).fits("s3cret ä".encode())
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    assert "has no password" in device("hash", "analytics", status=2)
