"""Read a whole log into fresh tables, with one node and no disturbance: the reference others are compared with."""

import sys
import tempfile
from pathlib import Path

from pyspark.sql import DataFrame

from tidegate.bus.assignments import Assignments
from tidegate.bus.client import Bus
from tidegate.bus.documents import NODE_LEASES
from tidegate.bus.installation import load_installation
from tidegate.bus.leases import Lease
from tidegate.pipeline.sources.slices import SliceSource
from tidegate.pipeline.spark import session
from tidegate.pipeline.tables.sink import Sink
from tidegate.pipeline.tables.tables import Tables
from tidegate.pipeline.tables.writing import TaskSettings


def main(state: Path, window_s: int) -> None:
    installation = load_installation(state)
    with Bus(installation.control_urls) as bus:
        assert Lease(bus, NODE_LEASES, "reference", 600).keep(), "another reference run is under way"
        Assignments(bus, installation.slices).change(lambda before: before.adopt(["reference"])[0])
    spark = session("tidegate-reference", "local[2]")
    spark.dataSource.register(SliceSource)
    tables = Tables(Path(installation.tables))
    sink = Sink(tables, TaskSettings(tables.directory, window_s, 0.0, False), 3600)
    frame = spark.readStream.format("tidegate").option("state", str(state)).option("node", "reference").load()

    def commit(batch: DataFrame, _: int) -> None:
        sink.commit(batch)

    with tempfile.TemporaryDirectory() as scratch:
        query = (
            sink.written(frame)
            .writeStream.foreachBatch(commit)
            .option("checkpointLocation", scratch)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        sink.settle()
        sink.close()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
