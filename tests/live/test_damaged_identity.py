"""What a gateway process goes by is damaged, and the process dies: the one in its place lets in nobody on trust."""

import contextlib
import itertools
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.bus import ControlBus, delete
from support.commands import Started, started
from support.credentials import password
from support.waiting import until
from support.wire import Wire

from tidegate.bus import identity
from tidegate.bus.documents import ACCESS, REVOKED
from tidegate.cli.main import run
from tidegate.gateway.identity.hashing import hashed
from tidegate.model.installation import Installation
from tidegate.model.registration import shard_of

pytestmark = pytest.mark.live
LET_IN, LATER, NOT_ALLOWED = 0, 3, 5
NUMBERS = itertools.count(1)  # what a gateway has told of itself outlives it for a while
ASKED = 12  # so many do not all meet the same process


@pytest.fixture
def gateway(installation: Installation, tmp_path: Path) -> Iterator[Started]:
    path = tmp_path / "passwords"
    path.write_text(f"clerk:{hashed(b'secret').text()}\n")
    more = f'[identity]\nmethods = ["derived", "file"]\n[identity.file]\npath = "{path}"'
    with started(installation, tmp_path, f"damaged-{next(NUMBERS)}", more=more) as running:
        yield running


def codes(gateway: Started, name: str, words: str) -> set[int]:
    found = set()
    for _ in range(ASKED):
        with contextlib.closing(Wire(gateway.address)) as client:
            found.add(client.connect(name, words).code)
    return found


def replace_all(gateway: Started) -> None:
    before = gateway.pids
    for pid in before:
        os.kill(pid, signal.SIGKILL)
    until(lambda: len(gateway.pids) == 2 and not gateway.pids & before, 30)


def test_without_its_password_file_a_process_serves_everybody_else(gateway: Started, tmp_path: Path) -> None:
    path = tmp_path / "passwords"
    good, words = path.read_text(), password(gateway.here, "pump")
    assert codes(gateway, "clerk", "secret") == {LET_IN}
    path.write_text("oops\n")
    replace_all(gateway)
    until(lambda: codes(gateway, "pump", words) == {LET_IN})
    assert codes(gateway, "clerk", "secret") == {LATER}
    until(lambda: any("until then clients that need it are told to come again" in line for line in gateway.said))
    path.write_text(good)
    until(lambda: codes(gateway, "clerk", "secret") == {LET_IN})


def test_who_may_be_in_a_damaged_shard_of_revoked_names_waits(gateway: Started, tmp_path: Path) -> None:
    words, other = password(gateway.here, "thief"), password(gateway.here, "pump")
    assert shard_of("thief") != shard_of("pump")
    assert run(["device", "revoke", "thief", "--state", str(tmp_path)]) == 0
    with ControlBus(gateway.here) as bus:
        bus.put_raw(REVOKED.key_of(shard_of("thief")), b"{oops")
        identity.tell_shard(bus, shard_of("thief"))
    replace_all(gateway)
    until(lambda: codes(gateway, "pump", other) == {LET_IN})
    assert codes(gateway, "thief", words) == {LATER}
    assert run(["device", "add", "other", "--state", str(tmp_path)]) == 0, "such a command restores it"
    until(lambda: codes(gateway, "thief", words) == {NOT_ALLOWED})


def test_while_access_is_damaged_a_new_process_lets_nobody_in(gateway: Started) -> None:
    words = password(gateway.here, "pump")
    with ControlBus(gateway.here) as bus:
        bus.put_raw(ACCESS.key, b"{oops")
        try:
            assert codes(gateway, "pump", words) == {LET_IN}, "who has read it before goes on"
            replace_all(gateway)
            until(lambda: any("or is deleted, no client is let in" in line for line in gateway.said))
            assert codes(gateway, "pump", words) == {LATER}
        finally:
            delete(gateway.here, ACCESS)
    until(lambda: codes(gateway, "pump", words) == {LET_IN})
