"""The logic behind the benchmarks' checks, on figures small enough to check by hand."""

import json
import threading
from pathlib import Path

import pytest

from tidegate_bench.nodes.table_log import Advance, TableLog, accepted_fenced_writes
from tidegate_bench.rig.following import asked_regularly
from tidegate_bench.rig.percentiles import percentile


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [
        ([1.0], 95, 1.0),
        ([1.0, 2.0], 50, 1.0),
        ([float(n) for n in range(1, 101)], 95, 95.0),
        ([1.0, 2.0, 3.0], 100, 3.0),
    ],
)
def test_percentiles(values: list[float], share: float, expected: float) -> None:
    assert percentile(values, share) == expected


def advance(slice_: int, epoch: int, offset: int) -> Advance:
    return Advance(0, 0.0, slice_, epoch, offset, 1)


def test_a_write_below_a_recorded_epoch_is_found() -> None:
    fine = [advance(0, 1, 5), advance(1, 3, 5), advance(0, 2, 5), advance(0, 2, 9)]
    assert accepted_fenced_writes(fine) == 0
    assert accepted_fenced_writes([*fine, advance(0, 1, 12), advance(1, 3, 7)]) == 1


def test_the_log_is_followed_commit_by_commit(tmp_path: Path) -> None:
    log = tmp_path / "_delta_log"
    log.mkdir()
    follower = TableLog(tmp_path)

    def commit(version: int, *actions: dict) -> None:
        (log / f"{version:020d}.json").write_text("\n".join(json.dumps(action) for action in actions))

    def record(name: str, version: int) -> dict:
        return {"txn": {"appId": name, "version": version}}

    commit(0, {"protocol": {}})
    follower.follow()
    assert follower.advances == []
    commit(1, record("slice-4", 70), record("slice-4-epoch", 2), {"add": {"path": "a"}}, {"add": {"path": "b"}})
    follower.follow()
    follower.follow()
    (found,) = follower.advances
    assert (found.version, found.slice, found.epoch, found.offset, found.files) == (1, 4, 2, 70, 2)


def test_what_is_asked_regularly_is_asked_meanwhile_and_once_more_at_the_end() -> None:
    asked = threading.Semaphore(0)
    with asked_regularly(asked.release, every_s=0.01):
        assert asked.acquire(timeout=5)
        assert asked.acquire(timeout=5)
    while asked.acquire(blocking=False):
        pass
    with asked_regularly(asked.release, every_s=60):
        pass
    assert asked.acquire(blocking=False)
    assert not asked.acquire(blocking=False)


def test_what_goes_wrong_with_it_is_raised_at_the_end() -> None:
    failed = threading.Event()

    def fail() -> None:
        failed.set()
        raise ValueError("gone")

    with pytest.raises(ValueError, match="gone"), asked_regularly(fail, every_s=0.01):
        assert failed.wait(5)
