"""A source that always has a new offset and never a row: what a batch costs before it carries anything."""

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType


class Ticks(DataSource):
    """A source that always has a new offset and never a row, with one partition per core."""

    @classmethod
    def name(cls) -> str:
        return "tidegate-ticks"

    def schema(self) -> str:
        return "slice int, epoch int, offset bigint, topic string, arrived timestamp, payload binary"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802
        return _TickReader()


class _TickReader(DataSourceStreamReader):
    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"tick": 0}

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:  # noqa: ARG002, N802
        return {"tick": start["tick"] + 1}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:  # noqa: ARG002
        return [InputPartition(0), InputPartition(1)]

    def read(self, partition: InputPartition) -> Iterator[Any]:  # noqa: ARG002
        return iter(())
