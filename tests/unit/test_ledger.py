"""The ledger on tables small enough to see, and on a real Delta table."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tidegate.model.errors import TidegateError, UserError
from tidegate.pipeline.tables.ledger import Identity, LedgerVerdict, check, read_identities

SCHEMA = pa.schema([("device", pa.string()), ("boot", pa.int64()), ("seq", pa.int64())])


def rows(*identities: tuple[str, int | None, int | None]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, each, strict=True)) for each in identities], schema=SCHEMA)


@pytest.mark.parametrize(
    ("acks", "stored", "expected"),
    [
        pytest.param(rows(), rows(), (0, 0, 0, 0, 0, 0), id="nothing was sent"),
        pytest.param(rows(("a", 0, 1)), rows(("a", 0, 1)), (1, 1, 0, 0, 0, 0), id="one arrived"),
        pytest.param(rows(("a", 0, 1)), rows(), (1, 0, 1, 0, 0, 0), id="one is lost"),
        pytest.param(rows(), rows(("a", 0, 1)), (0, 1, 0, 0, 1, 0), id="stored, its acknowledgement was lost"),
        pytest.param(
            rows(),
            rows(("a", 0, 1), ("a", 0, 1)),
            (0, 1, 0, 1, 1, 0),
            id="twice is wrong even unacknowledged",
        ),
        pytest.param(rows(("a", 0, 1), ("a", 1, 1)), rows(("a", 0, 1)), (2, 1, 1, 0, 0, 0), id="boots are told apart"),
        pytest.param(
            rows(("a", 0, 1), ("b", 0, 1)), rows(("b", 0, 1)), (2, 1, 1, 0, 0, 0), id="devices are told apart"
        ),
        pytest.param(
            rows(("a", 0, 1), ("a", 0, 1)),
            rows(("a", 0, 1)),
            (1, 1, 0, 0, 0, 0),
            id="acknowledged twice is one",
        ),
        pytest.param(
            rows(),
            rows(("a", None, None), ("a", None, None)),
            (0, 0, 0, 0, 0, 2),
            id="no identity, no duplicate",
        ),
    ],
)
def test_verdict(acks: pa.Table, stored: pa.Table, expected: tuple[int, ...]) -> None:
    verdict = check(acks, stored)
    assert expected == (
        verdict.acknowledged,
        verdict.stored,
        verdict.lost,
        verdict.duplicated,
        verdict.unacknowledged_stored,
        verdict.without_identity,
    )


def test_examples_name_what_is_wrong() -> None:
    verdict = check(rows(("a", 0, 5), ("a", 0, 4)), rows(("b", 1, 9), ("b", 1, 9)))
    assert verdict.lost_examples == (Identity("a", 0, 4), Identity("a", 0, 5))
    assert verdict.duplicated_examples == (Identity("b", 1, 9),)
    assert not verdict.holds


def test_acknowledgements_without_identity_are_damage() -> None:
    with pytest.raises(TidegateError, match="damaged"):
        check(rows(("a", None, None)), rows())


def test_two_million_rows() -> None:
    count = 2_000_000
    sequence = np.arange(count)
    devices = pa.array([f"device-{index:06d}" for index in range(200)])
    acks = pa.table(
        {
            "device": devices.take(pa.array(sequence % 200)),
            "boot": np.zeros(count, np.int64),
            "seq": sequence // 200,
        }
    )
    stored = pa.concat_tables([acks.slice(3), acks.slice(count - 2)])
    verdict = check(acks, stored)
    assert (verdict.acknowledged, verdict.lost, verdict.duplicated) == (count, 3, 2)


def test_identities_are_read_from_the_delta_table(tmp_path: Path) -> None:
    path = str(tmp_path / "readings")
    value = pa.array([1.5, 2.5])
    write_deltalake(path, rows(("a", 0, 0), ("a", None, None)).append_column("value", value))
    write_deltalake(path, rows(("b", 0, 0), ("b", 0, 1)).append_column("value", value), mode="append")
    table = read_identities(tmp_path)
    assert table.schema.equals(SCHEMA)
    assert check(rows(("a", 0, 0), ("b", 0, 1)), table) == LedgerVerdict(
        acknowledged=2, stored=3, lost=0, duplicated=0, unacknowledged_stored=1, without_identity=1
    )


def test_a_missing_table_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="No table of readings at"):
        read_identities(tmp_path)
