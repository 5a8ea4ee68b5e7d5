"""Spark is told the columns that the source's rows have."""

from tidegate.pipeline.sources.rows import SCHEMA
from tidegate.pipeline.sources.slices import COLUMNS


def test_both_name_the_same_columns_in_the_same_order() -> None:
    assert [column.split()[0] for column in COLUMNS.split(", ")] == SCHEMA.names
