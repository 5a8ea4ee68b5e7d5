"""Room on file systems, in bytes and in files: when it is short, and what is said of it."""

from pathlib import Path

import pytest

from tidegate.brokers.nats.disk_guard import CLOSE_SHARE, FREE_INODES_MIN, inode_share, should_open
from tidegate.machine.disks import Room, room_at, shortage, shortages

TABLES = {"the tables": Path("/data/tables")}
BOTH = TABLES | {"the state directory": Path("/data")}


def room(bytes_used: int = 10, inodes_used: int = 10, inodes: int = 100) -> Room:
    return Room(bytes_used, 100 - bytes_used, inodes, max(0, inodes - inodes_used))


@pytest.mark.parametrize(
    ("seen", "told"),
    [
        pytest.param(room(), [], id="plenty of both"),
        pytest.param(room(bytes_used=89, inodes_used=89), [], id="just below"),
        pytest.param(room(bytes_used=90), ["is 90% full"], id="bytes"),
        pytest.param(room(inodes_used=95), ["has used 95% of its inodes"], id="inodes"),
        pytest.param(room(bytes_used=100, inodes_used=100), ["is 100% full", "used 100% of its inodes"], id="both"),
        pytest.param(room(inodes_used=0, inodes=0), [], id="a file system that does not count inodes"),
        pytest.param(Room(0, 0, 0, 0), [], id="a file system that counts nothing"),
    ],
)
def test_what_is_short_is_named_with_where_and_what_to_do(seen: Room, told: list[str]) -> None:
    sentences = shortage(TABLES, seen)
    assert len(sentences) == len(told)
    for sentence, words in zip(sentences, told, strict=True):
        assert sentence.startswith("The disk of the tables (/data/tables) ")
        assert words in sentence
        assert ": free space" in sentence or ": compact" in sentence


def test_places_on_one_file_system_share_a_sentence() -> None:
    (sentence,) = shortage(BOTH, room(bytes_used=95))
    assert sentence.startswith("The disk of the tables (/data/tables) and the state directory (/data) is 95% full")


def test_a_place_that_does_not_exist_yet_is_where_its_parent_is(tmp_path: Path) -> None:
    assert room_at(tmp_path / "not" / "yet").inodes == room_at(tmp_path).inodes
    assert shortages({"the tables": tmp_path / "not" / "yet"}) == shortages({"the tables": tmp_path})


@pytest.mark.parametrize(
    ("free", "was_open", "is_open"),
    [
        pytest.param(10 * FREE_INODES_MIN, True, True, id="plenty of files fit"),
        pytest.param(FREE_INODES_MIN + 1, True, True, id="as many as must fit, and one"),
        pytest.param(FREE_INODES_MIN, True, False, id="no more than must fit"),
        pytest.param(FREE_INODES_MIN + 1, False, False, id="it does not flutter"),
        pytest.param(2 * FREE_INODES_MIN, False, True, id="files were removed"),
        pytest.param(0, True, False, id="none"),
    ],
)
def test_brokers_stop_acknowledging_before_no_file_can_be_made(free: int, was_open: bool, is_open: bool) -> None:
    share = inode_share(Room(0, 1, 1_000_000, free))
    assert should_open(share, is_open=was_open) == is_open


def test_a_file_system_without_inodes_closes_nothing() -> None:
    assert inode_share(Room(0, 1, 0, 0)) == 0.0
    assert inode_share(Room(0, 1, 10**9, 10**9)) < CLOSE_SHARE / 1000
