"""A file of a table that is missing or cannot be read: named and set aside, and the work goes on."""

import errno
import random
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from maintaining import SLICES, Writer, active, care, data_files, make_old, readings
from one_slice import OneSlice
from tidegate.model.errors import TidegateError, UserError
from tidegate.pipeline.completeness.pages import Open
from tidegate.pipeline.completeness.stored import StoredReadings
from tidegate.pipeline.tables import damage
from tidegate.pipeline.tables.damage import fault_of
from tidegate.pipeline.tables.ledger import read_identities
from tidegate.pipeline.tables.tables import LogTable, Tables
from tidegate.pipeline.tables.writing import TaskSettings, write_by_date

Harm = Callable[[Path], object]


def flip(path: Path) -> None:
    """One bit of the devices' names."""
    group, content = pq.read_metadata(path).row_group(0), bytearray(path.read_bytes())
    columns = {group.column(place).path_in_schema: group.column(place) for place in range(group.num_columns)}
    content[columns["device"].data_page_offset - 1] ^= 1
    path.write_bytes(content)


HARMS = [
    pytest.param(Path.unlink, "is missing", id="missing"),
    pytest.param(lambda path: path.write_bytes(path.read_bytes()[:300]), "cannot be read", id="cut short"),
    pytest.param(lambda path: path.write_bytes(b""), "cannot be read", id="empty"),
    pytest.param(flip, "cannot be read", id="a flipped bit"),
]


@pytest.fixture
def slice_(tmp_path: Path) -> OneSlice:
    """Three devices, each with two readings in a file of its own, and a fourth file of other devices."""
    made = OneSlice(tmp_path / "tables", time.time())
    for device in "abc":
        made.write([(device, 1, 1), (device, 1, 2)])
    made.write([("m", 1, 1), ("n", 1, 1)])
    return made


@pytest.mark.parametrize(("harm", "what"), HARMS)
def test_a_node_goes_on_without_a_damaged_file_and_names_it(slice_: OneSlice, harm: Harm, what: str) -> None:
    before, damaged = slice_.stored(), slice_.files()[1]
    whole = damaged.read_bytes()
    harm(damaged)
    slice_.write([("a", 1, 2), ("b", 1, 2), ("c", 1, 2), ("c", 1, 3)])
    alarm = slice_.damage[-1]
    assert alarm is not None
    assert f"{damaged.parent.name}/{damaged.name} of the table readings {what}" in alarm
    assert "would be stored again" in alarm
    assert "tidegate table check --table readings --remove" in alarm
    damaged.write_bytes(whole)
    assert slice_.stored() == sorted([*before, ("b", 1, 2), ("c", 1, 3)]), "only what the damaged file has came twice"
    slice_.tables.readings.damage._followed_s = -60.0
    slice_.write([("b", 1, 1)])
    assert slice_.damage[-1] is None, "it was restored"
    assert slice_.stored().count(("b", 1, 1)) == 1


@pytest.mark.parametrize(("harm", "what"), HARMS)
def test_a_slice_is_taken_up_though_a_file_behind_its_snapshot_is_damaged(
    slice_: OneSlice, harm: Harm, what: str
) -> None:
    harm(slice_.files()[1])
    slice_.start()
    slice_.write([("a", 1, 2), ("c", 1, 2), ("d", 1, 1)])
    assert what in str(slice_.damage[-1])
    found = slice_.tables.readings.rows(["device"], 0, 0, slice_.offset)["device"].to_pylist()
    assert sorted(found) == ["a", "a", "c", "c", "d", "m", "n"]


def test_after_a_lost_snapshot_devices_are_looked_up_without_the_damaged_file(slice_: OneSlice) -> None:
    (slice_.settings.tables / "identities" / "slice-0").mkdir(parents=True)
    slice_.files()[1].unlink()
    slice_.start()
    slice_.write([("a", 1, 2), ("b", 1, 3), ("c", 1, 2)])
    assert "is missing" in str(slice_.damage[-1])
    assert slice_.tables.readings.rows(["device"], 0, 0, slice_.offset).num_rows == 7


def test_where_many_files_are_gone_the_work_stops(slice_: OneSlice) -> None:
    for path in slice_.files()[:3]:
        path.rename(path.with_suffix(".away"))
    with pytest.raises(TidegateError, match=r"too many to go on .* check that the disk is there"):
        slice_.write([("a", 1, 2), ("b", 1, 2), ("c", 1, 2)])
    assert slice_.tables.readings.damage.found == {}


def test_an_error_that_is_not_the_files_is_not_swallowed(slice_: OneSlice, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = damage.open_file

    def refused(path: Path | str, *more: object) -> pq.ParquetFile:
        if str(path) == str(slice_.files()[1]):
            raise OSError(errno.EMFILE, "Too many open files")
        return opened(path, *more)

    monkeypatch.setattr("tidegate.pipeline.tables.lookup.open_file", refused)
    monkeypatch.setattr(damage, "open_file", refused)
    with pytest.raises(OSError, match="Too many open files"):
        slice_.write([("b", 1, 2)])
    assert slice_.tables.readings.damage.found == {}


def test_an_error_that_reading_the_file_alone_does_not_show_is_not_swallowed(slice_: OneSlice) -> None:
    def fails(_: list[str]) -> None:
        raise pa.ArrowInvalid("a join went wrong")

    paths = [str(path.relative_to(slice_.tables.readings.path)) for path in slice_.files()]
    with pytest.raises(pa.ArrowInvalid, match="a join"):
        slice_.tables.readings.damage.read(paths, fails)
    assert slice_.tables.readings.damage.found == {}


def test_a_file_that_was_replaced_meanwhile_is_not_damaged(slice_: OneSlice) -> None:
    table, gone = slice_.tables.readings, slice_.files()[0]
    hands = care(slice_.settings.tables, merge_files_min=2)
    assert hands.compact()
    gone.unlink()
    assert not table.damage.examine([str(gone.relative_to(table.path))])
    assert table.damage.found == {}


def test_a_file_that_is_yet_to_be_committed_is_never_set_aside(slice_: OneSlice) -> None:
    first = slice_.task([("x", 1, 1)])
    slice_.offset += 1
    second = slice_.task([("x", 1, 1)])
    (slice_.tables.readings.path / first.readings[0].path).unlink()
    with pytest.raises((TidegateError, OSError)):
        slice_.sink.commit_results([first, second])
    assert slice_.tables.readings.damage.found == {}


def test_the_ledgers_check_goes_on_and_names_the_file(slice_: OneSlice) -> None:
    slice_.files()[1].unlink()
    checked = StoredReadings(Tables(slice_.settings.tables), 1, 30)
    found = checked.since({0: 0})
    assert {run.device for run in found.stored} == {"a", "c", "m", "n"}
    assert "is missing" in checked.damage()[0]
    now_s = time.time()
    wanted = [Open(name, 1, 1, 2, 0, "gateway", now_s, now_s, 1) for name in "ab"]
    assert {run.device for run in checked.look_up(wanted)} == {"a"}


def test_a_verdict_by_hand_names_the_file(slice_: OneSlice) -> None:
    flip(slice_.files()[1])
    with pytest.raises(TidegateError, match=r"cannot be read .* --remove date=.*and they count as lost"):
        read_identities(slice_.settings.tables)


# -- maintenance


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    writer = Writer(tmp_path / "tables")
    for _ in range(10):
        writer.write()
    return tmp_path / "tables"


@pytest.mark.parametrize(("harm", "what"), HARMS)
def test_a_damaged_file_is_left_out_of_merges(directory: Path, harm: Harm, what: str) -> None:
    path = sorted(active(directory))[4]
    whole = (directory / "readings" / path).read_bytes()
    harm(directory / "readings" / path)
    hands = care(directory)
    while hands.compact():
        pass
    assert len(active(directory)) == 2
    assert path in active(directory)
    assert hands.health().damaged_files == 1
    assert f"{path} of the table readings {what}" in str(hands.table.damage.sentence)
    (directory / "readings" / path).write_bytes(whole)
    assert hands.health().damaged_files == 0
    assert hands.table.damage.sentence is None
    assert DeltaTable(str(directory / "readings")).to_pyarrow_table().num_rows == 10 * 5 * SLICES


def test_a_table_whose_files_are_gone_is_not_merged(directory: Path) -> None:
    for path in sorted(active(directory))[:7]:
        (directory / "readings" / path).unlink()
    hands = care(directory)
    with pytest.raises(TidegateError, match="too many to go on"):
        hands.compact()
    with pytest.raises(TidegateError, match="of the 10 files of the table readings"):
        hands.health()
    assert len(active(directory)) == 10


def test_a_damaged_file_is_taken_out_by_a_persons_word_and_kept(directory: Path) -> None:
    damaged, whole = sorted(active(directory))[:2]
    flip(directory / "readings" / damaged)
    hands = care(directory)
    assert list(hands.damaged()) == [damaged]
    with pytest.raises(UserError, match="can be read"):
        hands.remove_damaged(whole)
    with pytest.raises(UserError, match="has no file"):
        hands.remove_damaged("date=2020-01-01/part-1.parquet")
    hands.remove_damaged(damaged)
    assert damaged not in active(directory)
    assert len(active(directory)) == 9
    make_old(directory)
    hands.vacuum()
    assert f"_damaged/{damaged}" in data_files(directory)
    assert hands.damaged() == {}
    assert LogTable(directory, "readings").rows(["offset"], 0, 0, 100).num_rows == 45


def test_flipped_bits_in_rows_are_noticed(tmp_path: Path) -> None:
    """What decompresses to other values would pass for readings; only the footer has no checksum."""
    settings = TaskSettings(tmp_path, 60, 0.0, False)
    (tmp_path / "readings").mkdir()
    (add,) = write_by_date(settings, "readings", readings(0, 0, 500))
    path = tmp_path / "readings" / add.path
    content, rows = path.read_bytes(), pq.read_table(path)
    data_bytes = len(content) - 8 - pq.read_metadata(path).serialized_size
    chance, silent = random.Random(5), 0
    for _ in range(200):
        changed = bytearray(content)
        changed[chance.randrange(data_bytes)] ^= 1 << chance.randrange(8)
        path.write_bytes(changed)
        silent += fault_of(path) is None and not pq.read_table(path).equals(rows)
    assert silent == 0
