"""Why a query ended, in one sentence: every source of errors, and which goes before which."""

import errno
import os
from collections import namedtuple
from pathlib import Path

import pytest
from pyspark.errors import PySparkException

from tidegate.machine.evidence import Evidence
from tidegate.model.errors import FencedError
from tidegate.pipeline import problems
from tidegate.pipeline.problems import SENTENCE_MAX, problem_of

FULL = "The disk of {tables} is full: free some space; the readings wait in the log meanwhile."
SPARK = RuntimeError("[STREAM_FAILED] Query terminated\n  at org.apache.spark")
GAP = Evidence(sentence="Slice 3 has no message 7.", where="SLICE_3", expected="7", found="9")
DENIED = Evidence(sentence="[Errno 13] Permission denied: '/tables/a'", where="/tables/a", errno=errno.EACCES)
NO_SPACE = Evidence(sentence="[Errno 28] No space left on device", errno=errno.ENOSPC)


@pytest.mark.parametrize(
    ("failure", "reported", "left", "expected"),
    [
        pytest.param(FencedError("fenced"), SPARK, NO_SPACE, "fenced", id="our own error goes first"),
        pytest.param(OSError(errno.ENOSPC, "x"), SPARK, None, FULL, id="no room for the driver"),
        pytest.param(None, SPARK, NO_SPACE, FULL, id="no room for a worker"),
        pytest.param(None, SPARK, GAP, "Slice 3 has no message 7.", id="a worker's own error"),
        pytest.param(None, SPARK, DENIED, DENIED.sentence, id="an error of the system"),
        pytest.param(KeyError("x"), SPARK, None, "'x'", id="a fault of ours that is no sentence"),
        pytest.param(KeyError("x"), SPARK, GAP, "'x'", id="what failed here goes before what a worker left behind"),
        pytest.param(PySparkException("stage"), SPARK, GAP, GAP.sentence, id="a job that failed in a worker"),
        pytest.param(None, SPARK, None, "[STREAM_FAILED] Query terminated", id="Spark's first line"),
        pytest.param(None, None, None, "Spark ended it without a word.", id="nothing at all"),
    ],
)
def test_a_query_s_problem(
    tmp_path: Path, failure: BaseException | None, reported: Exception | None, left: Evidence | None, expected: str
) -> None:
    assert problem_of(failure, reported, left, tmp_path) == expected.format(tables=tmp_path)


def test_tables_that_are_gone_hide_no_error(tmp_path: Path) -> None:
    assert problem_of(None, SPARK, None, tmp_path / "gone") == "[STREAM_FAILED] Query terminated"


def test_a_disk_without_room_is_seen_although_no_error_has_its_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = namedtuple("disk", "f_bavail f_frsize f_files f_favail")
    for full in (disk(problems.FULL_DISK_BYTES // 4096 - 1, 4096, 100, 50), disk(10**9, 4096, 100, 0)):
        monkeypatch.setattr(os, "statvfs", lambda _, full=full: full)
        assert problem_of(None, SPARK, None, tmp_path) == FULL.format(tables=tmp_path)
        assert problem_of(None, SPARK, GAP, tmp_path) == FULL.format(tables=tmp_path)
    monkeypatch.setattr(os, "statvfs", lambda _: disk(10**9, 4096, 0, 0))
    assert problem_of(None, SPARK, GAP, tmp_path) == GAP.sentence, "some file systems count no inodes"


def test_a_sentence_is_cut_where_it_is_none(tmp_path: Path) -> None:
    assert len(problem_of(None, RuntimeError("x" * 1000), None, tmp_path)) == SENTENCE_MAX
