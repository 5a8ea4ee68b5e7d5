"""Devices with any name: what the table has of them is found, by look-ups and by readers, before and after a merge."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from sinking import Bench, reading

from maintaining import active, care
from tidegate.pipeline.tables.statistics import TEXT_MAX

NAMES = [
    pytest.param("\U00020bb7", id="plane 2"),
    pytest.param("pump-\U00020bb7\u91ce", id="plane 2 inside"),
    pytest.param("\U0001f600", id="plane 1"),
    pytest.param("\U0010ffff", id="the last character"),
    pytest.param("\U0010ffff" * (TEXT_MAX + 6), id="nothing shorter is above it"),
    pytest.param("x" * (TEXT_MAX - 1) + "\U0010ffff" * 5, id="cut in statistics"),
    pytest.param("\U00020bb7" * 2_000, id="too long for statistics of a file"),
    pytest.param('\x07"\\\u2028\x7f', id="what JSON escapes"),
]


def write(bench: Bench, *names_and_sequences: tuple[str, int]) -> int:
    """One batch of slice 0; how many of it were repeats."""
    after = bench.offsets[0]
    batch = bench.batch(0, after, [reading(seq) for _, seq in names_and_sequences])
    topics = pa.array([f"telemetry/{name}" for name, _ in names_and_sequences])
    result = bench.task_of(batch.set_column(batch.schema.get_field_index("topic"), "topic", topics))
    bench.sink.commit_results([result])
    bench.sink.settle()
    bench.offsets[0] = after + len(names_and_sequences)
    return result.repeats


def seen(directory: Path, name: str) -> list[int]:
    """What a reader finds who asks for this device only."""
    found = DeltaTable(str(directory / "readings")).to_pyarrow_table(filters=[("device", "=", name)])
    return sorted(found["seq"].to_pylist())


@pytest.mark.parametrize("name", NAMES)
def test_repeats_are_recognised_and_readers_find_the_device(bench: Bench, directory: Path, name: str) -> None:
    for seq in (5, 3):
        assert write(bench, (name, seq)) == 0
    for seq in (5, 3):
        assert write(bench, (name, seq)) == 1
    assert seen(directory, name) == [3, 5]
    care(directory, log_retention_s=60, log_entries_max=100).shorten_log()
    assert seen(directory, name) == [3, 5], "a checkpoint has the same statistics"
    assert care(directory, merge_files_min=2).compact()
    assert seen(directory, name) == [3, 5]
    for seq in (5, 3):
        assert write(bench, (name, seq)) == 1
    assert bench.sequences() == [3, 5]


def test_names_have_one_order_in_memory_in_statistics_and_in_files(bench: Bench, directory: Path) -> None:
    """U+FFFF is below U+10000 by code points and by bytes, and above it in UTF-16."""
    names = ["\uffff", "\U00010000", "a\U00010000", "a\uffff", "\U00020000", "\ue000"]
    for seq in (5, 3):
        for name in names:
            assert write(bench, (name, seq)) == 0
        assert write(bench, *((name, seq) for name in names)) == len(names)
    while care(directory, merge_files_min=2).compact():
        pass
    (path,) = active(directory)
    rows = pq.ParquetFile(directory / "readings" / path).read(["device"])
    assert rows["device"].to_pylist() == [name for name in sorted(names) for _ in range(2)]
    for seq in (5, 3):
        assert write(bench, *((name, seq) for name in names)) == len(names)
    assert [seen(directory, name) for name in names] == [[3, 5]] * len(names)
