"""The logic behind the benchmarks' checks, on figures small enough to check by hand."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from tidegate_bench.nodes.table_log import Advance, TableLog, accepted_fenced_writes
from tidegate_bench.pipeline.checks import (
    DELAY,
    DELTA,
    EMPTY,
    JETSTREAM,
    LARGE,
    NATSPY,
    PAIRS,
    PARQUET,
    SMALL,
)
from tidegate_bench.pipeline.checks import checks as pipeline_checks
from tidegate_bench.pipeline.checks import spreads as pipeline_spreads
from tidegate_bench.pipeline.run import Way, in_pairs
from tidegate_bench.rig.following import asked_regularly
from tidegate_bench.rig.percentiles import percentile
from tidegate_bench.rig.spreads import spread


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


def test_a_spread_has_quartiles_and_ends() -> None:
    found = spread("ratio", [5.0, 1.0, 2.0, 3.0, 4.0])
    assert (found["check"], found["count"]) == ("ratio", 5)
    assert [found[key] for key in ("lowest", "quartile_1", "median", "quartile_3", "highest")] == [1, 2, 3, 4, 5]
    assert spread("ratio", [7.0])["quartile_1"] == 7.0


def pipeline_rows(*rates: tuple[str, int, int]) -> list[dict[str, Any]]:
    """(what, pair, rows a second) of each run, and the rest that the checks need."""
    others = [{"what": what, "us_per_row": 2.0, "p50_s": 0.2} for what in (SMALL, LARGE, DELAY, EMPTY)]
    return [*({"what": what, "pair": pair, "rows_per_s": rate} for what, pair, rate in rates), *others]


def test_peers_are_compared_pair_by_pair() -> None:
    """A machine that is ten times as slow for one pair changes nothing."""
    rates = [(NATSPY, pair, 20_000) for pair in range(3)] + [(JETSTREAM, pair, 200_000) for pair in range(3)]
    rates += [(PARQUET, 0, 100), (DELTA, 0, 50), (DELTA, 1, 7), (PARQUET, 1, 10), (PARQUET, 2, 100), (DELTA, 2, 90)]
    rows = pipeline_rows(*rates)
    rows += pipeline_spreads(rows)
    ratios = next(row for row in rows if row.get("check") == "jetstream_vs_parquet")
    assert [ratios[key] for key in ("count", "lowest", "median", "highest")] == [3, 0.5, 0.7, 0.9]
    found = {check.name: (check.value, check.holds) for check in pipeline_checks(rows)}
    assert found["jetstream_vs_parquet"] == (0.7, True)
    assert found["jetstream_vs_natspy"] == (10.0, True)


def test_each_of_a_pair_is_first_in_turn() -> None:
    order: list[str] = []

    def way(what: str) -> Way:
        return 100, lambda: order.append(what) or 2.0

    ways = {what: way(what) for pair in PAIRS.values() for what in pair}
    rows = [*in_pairs(ways, 0), *in_pairs(ways, 1)]
    assert order == [NATSPY, JETSTREAM, PARQUET, DELTA, JETSTREAM, NATSPY, DELTA, PARQUET]
    assert [(row["what"], row["pair"], row["rows_per_s"]) for row in rows[:2]] == [(NATSPY, 0, 50), (JETSTREAM, 0, 50)]


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
