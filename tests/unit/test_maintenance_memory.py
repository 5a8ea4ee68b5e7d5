"""What a merge takes into memory at a time: what fits, counted as it is there."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from maintaining import TODAY, Writer, care, compacted, readings, stored
from tidegate.pipeline.maintenance import merging
from tidegate.pipeline.maintenance.care import Care
from tidegate.pipeline.maintenance.keys import KEYS
from tidegate.pipeline.maintenance.planning import DataFile, Limits
from tidegate.pipeline.tables import groups
from tidegate.pipeline.tables.writing import write_by_date


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
    assert max(group.memory for group in source.groups) <= groups.GROUP_BYTES
    limits = Limits(bytes_min=1 << 20, bytes_max=1 << 28, files_min=2)
    how = merging.Merging(directory / "readings", rows.schema, key, 10_000_000, limits, False, lambda: None)
    assert merging._whole(how, [source.file]) is None, "it does not fit, whatever its size on the disk says"
    _, (merged_add,) = merging.merge(how, [source.file])
    (merged,) = open_sources_of(directory, merged_add.path, key)
    assert merged.is_sorted
    assert sum(group.memory for group in merged.groups) > large.nbytes
    assert merged.footprint <= groups.GROUP_BYTES
    assert sum(merged.read(group).num_rows for group in merged.groups) == 500


def open_sources_of(directory: Path, path: str, key: tuple[str, ...]) -> list[merging.Source]:
    size = (directory / "readings" / path).stat().st_size
    return merging.open_sources(directory / "readings", [DataFile(path, TODAY, size, 500, 0, 0, 0.0)], key, 1)


def test_sorted_files_are_merged_range_by_range_within_the_memory(
    writer: Writer, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merging, "GROUP_ROWS", 8)
    assert compacted(directory) == 10
    for _ in range(3):
        for _ in range(4):
            writer.write(10)
        compacted(directory)
    before, seen = stored(directory), []
    by_ranges = merging._by_ranges

    def watched(*arguments: Any) -> Iterator[pa.Table]:
        for rows in by_ranges(*arguments):
            seen.append(rows.num_rows)
            yield rows

    monkeypatch.setattr(merging, "_by_ranges", watched)
    hands = care(directory)
    files = sorted(hands.table.files(), key=lambda file: file.path)
    merged, adds = merging.merge(how(hands, memory=10_000), files)
    hands.table.replace(merged, adds, what="test")
    assert stored(directory) == before
    assert len(merged) == len(files) == 4
    assert len(seen) > 3
    assert max(seen) < len(before) / 2


def how(hands: Care, memory: int) -> merging.Merging:
    schema, key = hands.table.schema, KEYS["readings"]
    return merging.Merging(hands.table.path, schema, key, memory, hands.limits, True, lambda: None)


def test_files_that_are_not_sorted_come_first_and_only_as_many_as_fit(writer: Writer, directory: Path) -> None:
    compacted(directory)
    for _ in range(4):
        writer.write()
    hands = care(directory)
    files = hands.table.files()
    chosen = merging.open_sources(hands.table.path, files, KEYS["readings"], 1 << 30)
    assert len(chosen) == 4
    assert not any(source.is_sorted for source in chosen)
    footprint = chosen[0].footprint
    few = merging.open_sources(hands.table.path, files, KEYS["readings"], 3 * footprint)
    assert len(few) == 3
