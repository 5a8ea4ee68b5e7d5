"""What a merge takes into memory at a time: what fits, counted as it is there."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from maintaining import TODAY, Writer, active, care, compacted, readings, stored
from tidegate.pipeline.maintenance import inputs, merging, output
from tidegate.pipeline.maintenance.care import Care
from tidegate.pipeline.maintenance.keys import KEYS, in_order
from tidegate.pipeline.maintenance.planning import DataFile, Limits
from tidegate.pipeline.tables import groups
from tidegate.pipeline.tables.tables import Step
from tidegate.pipeline.tables.writing import write_by_date
from tidegate.pipeline.transforms.parsing import READINGS


def test_rows_that_are_large_only_in_memory_are_counted_as_such(directory: Path) -> None:
    writer = Writer(directory)
    large = pa.array(["x" * 60_000] * 500)
    rows = readings(0, 0, 500)
    rows = rows.set_column(rows.schema.get_field_index("extra"), rows.schema.field("extra"), large)
    (add,) = write_by_date(writer.settings, "readings", rows)
    key = ("slice", "device", "boot", "seq")
    (source,) = open_sources_of(directory, add.path, key)
    assert add.size < 100_000
    assert source.footprint > large.nbytes
    assert max(source.sizes) <= groups.GROUP_BYTES
    limits = Limits(bytes_min=1 << 20, bytes_max=1 << 28, files_min=2)
    how = merging.Merging(directory / "readings", rows.schema, key, 10_000_000, limits, False, lambda: None)
    assert merging._whole(how, [source.file]) is None, "it does not fit, whatever its size on the disk says"
    _, adds = merging.merge(how, [source.file])
    merged = [one for add in adds for one in open_sources_of(directory, add.path, key)]
    assert len(merged) > 1, "what did not fit together is in files of its own"
    assert all(one.is_sorted for one in merged)
    assert sum(sum(one.sizes) for one in merged) > large.nbytes
    assert max(one.footprint for one in merged) <= groups.GROUP_BYTES
    assert sum(one.read(group, rows.schema).num_rows for one in merged for group in range(len(one.sizes))) == 500


def open_sources_of(directory: Path, path: str, key: tuple[str, ...]) -> list[inputs.Source]:
    size = (directory / "readings" / path).stat().st_size
    return inputs.open_sources(directory / "readings", [DataFile(path, TODAY, size, 500, 0, 0, 0.0)], key, 1)


def test_sorted_files_are_merged_bit_by_bit_within_the_memory(
    writer: Writer, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "GROUP_ROWS", 8)
    assert compacted(directory) == 10
    for _ in range(3):
        for _ in range(4):
            writer.write(10)
        compacted(directory)
    before, seen = stored(directory), []
    add = output.Output.add
    monkeypatch.setattr(output.Output, "add", lambda self, rows: (seen.append(rows.num_rows), add(self, rows)))
    hands = care(directory)
    files = sorted(hands.table.files(), key=lambda file: file.path)
    merged, adds = merging.merge(how(hands, memory=10_000), files)
    hands.table.replace(merged, adds, what="test")
    assert stored(directory) == before
    assert len(merged) == len(files) == 4
    assert sum(seen) == len(before)
    assert max(seen) <= 4 * 8, "a group of each"
    (path,) = active(directory)
    rows = pq.ParquetFile(directory / "readings" / path).read()
    assert rows.equals(in_order(rows, KEYS["readings"]))


def how(hands: Care, memory: int) -> merging.Merging:
    schema, key = hands.table.schema, KEYS["readings"]
    return merging.Merging(hands.table.path, schema, key, memory, hands.limits, True, lambda: None)


def test_files_that_are_not_sorted_come_first_and_only_as_many_as_fit(writer: Writer, directory: Path) -> None:
    compacted(directory)
    for _ in range(4):
        writer.write()
    hands = care(directory)
    files = hands.table.files()
    chosen = inputs.open_sources(hands.table.path, files, KEYS["readings"], 1 << 30)
    assert len(chosen) == 4
    assert not any(source.is_sorted for source in chosen)
    footprint = chosen[0].footprint
    few = inputs.open_sources(hands.table.path, files, KEYS["readings"], 3 * footprint)
    assert len(few) == 3


@pytest.mark.parametrize("identified", [True, False])
def test_memory_is_bounded_however_large_rows_are_and_however_alike_their_keys(
    directory: Path, monkeypatch: pytest.MonkeyPatch, identified: bool
) -> None:
    """One device, files that are larger than the memory each, and 64 MiB in memory altogether."""
    monkeypatch.setattr(groups, "GROUP_BYTES", 2 << 20)
    monkeypatch.setattr(output, "GROUP_BYTES", 2 << 20)
    writer, memory, wide = Writer(directory), 8 << 20, "x" * 32_000
    for _ in range(4):
        after = writer.offsets[0]
        columns = dict(zip(READINGS.names, readings(0, after, after + 500), strict=True))
        ids = columns["offset"] if identified else pa.nulls(500, pa.int64())
        columns |= {"boot": ids, "seq": ids, "identified": pa.array([identified] * 500)}
        columns |= {"device": pa.array(["pump"] * 500), "extra": pa.array([wide] * 500)}
        rows = pa.table(columns, schema=READINGS)
        writer.table.commit(write_by_date(writer.settings, "readings", rows), {0: Step(1, after, after + 500)})
        writer.offsets[0] += 500
    pool = pa.default_memory_pool()
    hands, seen, add = care(directory, merge_files_min=2), [], output.Output.add

    def watched(self: output.Output, rows: pa.Table) -> None:
        add(self, rows)
        seen.append(pool.bytes_allocated())

    monkeypatch.setattr(output.Output, "add", watched)
    before = pool.bytes_allocated()
    while merges := hands.planned():
        merged, adds = merging.merge(how(hands, memory), merges[0])
        hands.table.replace(merged, adds, what="test")
        hands._made |= {one.path for one in adds}
    assert max(seen) - before < 4 * memory
    assert len(active(directory)) == 1
    assert [row["offset"] for row in stored(directory)] == list(range(1, 2_001))
