"""The acknowledgement file: what is in it stays in it, what is torn does not count."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tidegate.devices.acknowledgements import SUFFIX, AckFile, read_directory, read_file
from tidegate.model.devices import check_device
from tidegate.model.errors import TidegateError, UserError


def records(path: Path) -> list[tuple[str, int, int]]:
    table = read_file(path)
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def test_records_come_back_in_order(tmp_path: Path) -> None:
    path = tmp_path / "deep" / f"a{SUFFIX}"
    with AckFile(path) as file:
        file.append("pump-1", 0, 7)
        file.append('ventil "ä", 2', 3, 2**62)
        file.flush()
        file.append("pump-1", 0, 8)
    assert records(path) == [("pump-1", 0, 7), ('ventil "ä", 2', 3, 2**62), ("pump-1", 0, 8)]
    assert read_file(path).schema.field("device").type == "string"


def test_names_that_look_like_something_else_stay_names(tmp_path: Path) -> None:
    path = tmp_path / f"a{SUFFIX}"
    with AckFile(path) as file:
        for name in ("NULL", "nan", "0017", "true"):
            file.append(name, 0, 0)
    assert [device for device, _, _ in records(path)] == ["NULL", "nan", "0017", "true"]


def test_nothing_is_in_the_file_before_the_flush(tmp_path: Path) -> None:
    with AckFile(tmp_path / f"a{SUFFIX}") as file:
        file.append("d", 0, 0)
        assert records(file.path) == []
        file.flush()
        assert records(file.path) == [("d", 0, 0)]


@pytest.mark.parametrize("torn", [b"d", b"d\t0", b"d\t0\t1", b"x" * 10_000])
def test_a_torn_record_is_ignored_and_cut_off_by_the_next_writer(tmp_path: Path, torn: bytes) -> None:
    path = tmp_path / f"a{SUFFIX}"
    path.write_bytes(b"d\t0\t0\n" + torn)
    assert records(path) == [("d", 0, 0)]
    with AckFile(path) as file:
        file.append("d", 0, 2)
    assert records(path) == [("d", 0, 0), ("d", 0, 2)]


def test_a_file_that_is_nothing_but_torn_is_empty(tmp_path: Path) -> None:
    path = tmp_path / f"a{SUFFIX}"
    path.write_bytes(b"d\t0")
    assert records(path) == []
    AckFile(path).close()
    assert path.read_bytes() == b""


def test_what_a_killed_writer_flushed_is_there(tmp_path: Path) -> None:
    path = tmp_path / f"a{SUFFIX}"
    code = (
        "import sys, time; from pathlib import Path; from tidegate.devices.acknowledgements import AckFile\n"
        "file = AckFile(Path(sys.argv[1]))\n"
        "for seq in range(100): file.append('d', 0, seq)\n"
        "file.flush(); file.append('d', 0, 100); print('ready', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGKILL)
    assert records(path) == [("d", 0, seq) for seq in range(100)]


def test_two_writers_of_one_file_are_refused(tmp_path: Path) -> None:
    path = tmp_path / f"a{SUFFIX}"
    with AckFile(path), pytest.raises(UserError, match="another publisher"):
        AckFile(path)


def test_a_file_that_cannot_be_written_says_so_and_stays_so(tmp_path: Path) -> None:
    file = AckFile(tmp_path / f"a{SUFFIX}")
    readable = os.open(file.path, os.O_RDONLY)
    os.dup2(readable, file._descriptor)  # writing to it now fails, as on a full disk
    os.close(readable)
    file.append("d", 0, 0)
    for _ in range(2):
        with pytest.raises(TidegateError, match="cannot be written"):
            file.flush()
    file.close()


def test_a_directory_is_read_as_one_table(tmp_path: Path) -> None:
    for name in ("a", "b"):
        with AckFile(tmp_path / f"{name}{SUFFIX}") as file:
            file.append(name, 0, 1)
    (tmp_path / "notes.txt").write_text("not a record")
    table = read_directory(tmp_path)
    assert table.column("device").to_pylist() == ["a", "b"]


def test_an_empty_directory_and_a_wrong_file_are_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No acknowledgement files"):
        read_directory(tmp_path)
    (tmp_path / f"x{SUFFIX}").write_text("hello\nworld\n")
    with pytest.raises(TidegateError, match="not an acknowledgement file"):
        read_directory(tmp_path)


@pytest.mark.parametrize("name", ["", "a/b", "a+", "#", "a\tb", "a\nb", "\0", "x" * 2_000])
def test_names_that_fit_no_topic_level_are_refused(name: str) -> None:
    with pytest.raises(UserError, match="cannot be a topic level"):
        check_device(name)


@pytest.mark.parametrize("name", ["*", ">"])
def test_names_that_are_wildcards_to_the_broker_are_refused(name: str) -> None:
    with pytest.raises(UserError, match="is a wildcard to the broker"):
        check_device(name)
    check_device(f"a{name}")


def test_many_records_are_read_at_once(tmp_path: Path) -> None:
    path = tmp_path / f"a{SUFFIX}"
    path.write_text("".join(f"device-{seq % 200:06d}\t0\t{seq}\n" for seq in range(300_000)))
    started = time.perf_counter()
    assert read_file(path).num_rows == 300_000
    assert time.perf_counter() - started < 10
