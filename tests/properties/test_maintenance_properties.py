"""Maintenance loses nothing and comes to an end, whatever files there are."""

from dataclasses import replace
from datetime import date
from itertools import count

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given
from hypothesis import strategies as st

from tidegate.pipeline.maintenance.inputs import Source
from tidegate.pipeline.maintenance.inputs import merged as merged_rows
from tidegate.pipeline.maintenance.keys import in_order, key_at
from tidegate.pipeline.maintenance.log import first_kept
from tidegate.pipeline.maintenance.planning import DataFile, Limits, next_merges
from tidegate.pipeline.tables.statistics import TEXT_MAX, statistics_of, together

TODAY = date(2026, 11, 17)
DAYS = [date(2026, 11, 15), date(2026, 11, 16), TODAY]
SLICES = 8
LIMITS = Limits(bytes_min=1_000, bytes_max=8_000, files_min=4)
numbers = count()


@st.composite
def data_files(draw: st.DrawFn) -> DataFile:
    low, high = sorted(draw(st.tuples(st.integers(0, SLICES - 1), st.integers(0, SLICES - 1))))
    size = draw(st.integers(1, 12_000) | st.integers(1, 40))
    day = draw(st.sampled_from(DAYS))
    return DataFile(f"file-{next(numbers)}", day, size, size, low, high, 0.0)


def merged(inputs: tuple[DataFile, ...]) -> list[DataFile]:
    """What a merge makes of its files when rows are spread evenly over their slices: cut where a slice ends."""
    per_slice = [0.0] * SLICES
    for file in inputs:
        for slice_ in range(file.low, file.high + 1):
            per_slice[slice_] += file.size / (file.high - file.low + 1)
    outputs: list[DataFile] = []
    low, size = None, 0.0
    for slice_, amount in enumerate(per_slice):
        if amount and low is None:
            low = slice_
        size += amount
        is_last = not any(per_slice[slice_ + 1 :])
        if low is not None and (size >= LIMITS.bytes_min or is_last):
            whole = max(1, round(size))
            outputs.append(replace(inputs[0], path=f"file-{next(numbers)}", size=whole, low=low, high=slice_))
            low, size = None, 0.0
        if is_last:
            break
    return outputs


def settled(files: list[DataFile], now_s: float = 1e9) -> list[DataFile]:
    """Merged until nothing is left to do; fails if that takes more steps than it can."""
    for _ in range(20 * len(files) + 20):
        merges = next_merges(files, now_s, TODAY, LIMITS)
        if not merges:
            return files
        taken = [file for step in merges for file in step]
        assert len(set(taken)) == len(taken), "no file is in two merges"
        assert set(taken) <= set(files)
        for step in merges:
            assert len({file.date for file in step}) == 1
            assert len(step) >= 2
            assert sum(file.size for file in step) <= LIMITS.bytes_max
            files = [file for file in files if file not in step] + merged(step)
    raise AssertionError("merging does not come to an end")


@given(st.lists(data_files(), max_size=60))
def test_merging_ends_and_leaves_few_files(files: list[DataFile]) -> None:
    left = settled(files)
    for day in DAYS:
        mine = [file for file in left if file.date == day]
        small = [file for file in mine if file.size < LIMITS.bytes_min]
        large = [file for file in mine if LIMITS.bytes_min <= file.size < LIMITS.bytes_max]
        if day == TODAY:
            assert len(small) <= (LIMITS.files_min - 1) * 6, "three of each class of size"
        else:
            assert len(small) <= 1
        for slice_ in range(SLICES):
            holders = sorted(file.size for file in large if file.low <= slice_ <= file.high)
            least = LIMITS.files_min if day == TODAY else 2
            assert sum(holders[:least]) > LIMITS.bytes_max or len(holders) < least, "a slice is as shallow as it gets"


@given(st.lists(st.lists(st.integers(1, 60), min_size=1, max_size=40), max_size=12))
def test_a_day_that_is_written_all_the_time_stays_bounded(rounds: list[list[int]]) -> None:
    files: list[DataFile] = []
    total = 0
    for sizes in rounds:
        files += [DataFile(f"file-{next(numbers)}", TODAY, size, size, 0, SLICES - 1, 0.0) for size in sizes]
        total += sum(sizes)
        files = settled(files)
        assert len(files) <= (LIMITS.files_min - 1) * 6 + SLICES * LIMITS.files_min + total // LIMITS.bytes_min


rows = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.sampled_from(["", "a", "b", "ä", "\uffff", "\U00010000", "zz"]),
        st.none() | st.integers(0, 2),
        st.none() | st.integers(0, 5),
    ),
    max_size=40,
)
KEY = ("slice", "device", "boot", "seq")
SCHEMA = pa.schema([("slice", pa.int32()), ("device", pa.string()), ("boot", pa.int64()), ("seq", pa.int64())])


def table(of: list[tuple[int, str, int | None, int | None]]) -> pa.Table:
    columns = list(zip(*of, strict=True)) if of else [[], [], [], []]
    return pa.table([pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)], SCHEMA)


Rows = list[tuple[int, str, int | None, int | None]]


class Parts(Source):
    """A sorted source whose groups have three rows, without a file."""

    def __init__(self, rows: pa.Table) -> None:
        object.__setattr__(self, "sizes", tuple(range(0, rows.num_rows, 3)))
        object.__setattr__(self, "rows", rows)

    def read(self, group: int, schema: pa.Schema) -> pa.Table:
        assert schema is SCHEMA
        return self.rows.slice(group * 3, 3)  # type: ignore[attr-defined]


@given(st.lists(rows, min_size=1, max_size=4))
def test_sorted_files_become_one_in_order_whatever_their_keys(files: list[Rows]) -> None:
    sources = [Parts(in_order(table(those), KEY)) for those in files]
    found = [SCHEMA.empty_table(), *merged_rows(sources, SCHEMA, KEY)]
    expected = in_order(pa.concat_tables([table(those) for those in files]), KEY)
    assert pa.concat_tables(found).to_pylist() == expected.to_pylist()
    assert all(part.num_rows <= 3 * len(files) for part in found)


@given(rows)
def test_keys_are_in_the_order_of_the_rows(those: Rows) -> None:
    ordered = in_order(table(those), KEY)
    keys = [key_at(ordered, KEY, place) for place in range(ordered.num_rows)]
    assert keys == sorted(keys)


@given(st.lists(rows.filter(bool), min_size=1, max_size=5))
def test_statistics_of_parts_are_those_of_the_whole(
    parts: list[list[tuple[int, str, int | None, int | None]]],
) -> None:
    tables = [table(part) for part in parts]
    whole = pa.concat_tables(tables)
    assert together([statistics_of(part) for part in tables]) == statistics_of(whole)
    assert statistics_of(whole)["minValues"]["slice"] == pc.min(whole["slice"]).as_py()


@given(
    st.integers(1, 300),
    st.sets(st.integers(0, 320)),
    st.integers(0, 320),
    st.integers(0, 320),
    st.integers(1, 200),
)
def test_a_log_is_never_cut_where_no_checkpoint_covers_it(
    length: int, checkpoints: set[int], aged: int, young: int, entries_max: int
) -> None:
    entries = list(range(7, 7 + length))
    start = first_kept(entries, sorted(checkpoints), aged=aged, young=young, entries_max=entries_max)
    if start is not None:
        assert start in checkpoints
        assert start <= entries[-1]
        assert start <= young
        assert start <= max(aged, entries[max(0, length - entries_max)])


_TEXTS = st.tuples(
    st.text(st.sampled_from("ab\ud7ff\ue000\uffff\U0010ffff"), min_size=1, max_size=3),
    st.integers(0, 100),
    st.text(max_size=4),
).map(lambda parts: parts[0] * parts[1] + parts[2])


@given(st.lists(_TEXTS, min_size=1, max_size=5))
def test_long_texts_are_cut_off_in_statistics_and_no_row_falls_outside(texts: list[str]) -> None:
    found = statistics_of(pa.table({"device": texts}))
    low, high = found["minValues"]["device"], found["maxValues"]["device"]
    for text in texts:
        assert low.encode() <= text.encode() <= high.encode()
    assert len(low) <= TEXT_MAX
    assert len(high) <= TEXT_MAX or set(high[:TEXT_MAX]) == {"\U0010ffff"}
