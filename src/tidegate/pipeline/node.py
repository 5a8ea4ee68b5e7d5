"""A processing node: one Spark query over a changeable set of slices, and the thread that keeps its place.

The query's checkpoint is scratch. Every start begins with an empty one, at the offsets the tables' log records, so
there is nothing of a node that has to survive it.
"""

import json
import threading
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from deltalake.exceptions import DeltaError
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tidegate.bus.assignments import Assignments
from tidegate.bus.client import Bus
from tidegate.bus.installation import load_installation
from tidegate.machine import evidence
from tidegate.model.errors import BrokerUnavailableError, DamagedDocumentError, TidegateError
from tidegate.pipeline.keeper import Keeper, Say
from tidegate.pipeline.naming import await_name
from tidegate.pipeline.problems import doubted_in, problem_of
from tidegate.pipeline.progress import ProgressBoard, plausible
from tidegate.pipeline.pulse import Pulse
from tidegate.pipeline.retention import Retention
from tidegate.pipeline.scratch import Scratch, prefix_of, remove_leftovers
from tidegate.pipeline.settings import NodeSettings
from tidegate.pipeline.sources.slices import SliceSource
from tidegate.pipeline.spark import prepare, session
from tidegate.pipeline.tables import checkpoints
from tidegate.pipeline.tables.sink import Sink
from tidegate.pipeline.tables.tables import SCHEMAS, Tables
from tidegate.pipeline.tables.writing import TaskSettings

_BACKOFF_S_MAX = 5.0
RETENTION = "retention"
IDENTITIES = "identities"
DAMAGE = "damage"
PLANNING = "planning"
# How long the main thread waits for the query before it looks after other things, at most.
LOOK_S = 0.2
# A report is seen this much later than it was made, at most.
REPORTED_S_MAX = 5.0


class Node:
    """``run`` blocks until ``stop`` is called from a signal handler or another thread."""

    def __init__(self, state: Path, settings: NodeSettings, say: Say, *, fsync: bool = False) -> None:
        self._state = state
        self._settings = settings
        self._say = say
        self._fsync = fsync
        self._installation = load_installation(state)
        self._stopping = threading.Event()
        self._lease_lost = threading.Event()
        trigger_s = settings.trigger_ms / 1e3
        pulse = Pulse(settings.stall_s_min, trigger_s, settings.cost_us_per_record / 1e6)
        self._board = ProgressBoard(settings.name, trigger_s, pulse)
        self._scratch: Scratch | None = None
        self._failure: BaseException | None = None
        self._was_ready = False
        self._reported_s = 0.0
        self._doubted: dict[int, int] = {}  # slice -> the last message of it that a query did not get
        self._told: list[str] = []
        self._bus = Bus(self._installation.control_urls, name=f"{settings.name}-sink")
        self._assignments = Assignments(self._bus, self._installation.slices)
        self._retention = Retention(self._installation, settings, time.monotonic(), fsync=fsync)

    def stop(self) -> None:
        self._stopping.set()

    def run(self) -> None:
        """Serve until stopped. A mistake (a name in use, no Java) is said before Spark has taken its seconds."""
        await_name(self._installation, self._settings, self._say)
        remove_leftovers(prefix_of(self._state, self._settings.name))
        self._sum_up_logs()
        prepare(self._say)
        directory = self._state / "nodes" / self._settings.name
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        spark = session(
            f"tidegate-{self._settings.name}",
            self._settings.master,
            heap_mib=self._settings.heap_mib,
            log=directory / "spark.log",
        )
        try:
            spark.dataSource.register(SliceSource)
            _warm_up(spark)
            self._serve(spark)
        except (Py4JNetworkError, ConnectionError) as error:
            raise TidegateError(
                f"The JVM of node {self._settings.name} has ended: start the node again; other nodes take its slices."
            ) from error
        finally:
            self._retention.close()
            self._bus.close()
            with suppress(Py4JError, ConnectionError):
                spark.stop()
        if self._lease_lost.is_set():
            raise TidegateError(
                f"Another process runs as node {self._settings.name}, so this one has stopped: give each node a "
                "name of its own."
            )

    def _sum_up_logs(self) -> None:
        """What nobody looked after for a day is read in before slices are taken: until then others work on them."""
        for name in SCHEMAS:
            log = Path(self._installation.tables) / name / "_delta_log"
            behind = checkpoints.behind(log)
            if behind > checkpoints.BEHIND_MAX:
                self._say(
                    f"The log of the table {name} has {behind:,} entries behind its last checkpoint: node "
                    f"{self._settings.name} sums them up first, which takes minutes. See that a maintainer runs."
                )
                checkpoints.catch_up(log, self._rest, checkpoints.BEHIND_MAX)

    def _rest(self) -> None:
        if self._stopping.is_set():
            raise TidegateError(f"Node {self._settings.name} was stopped while it read a table's log.")

    def _serve(self, spark: SparkSession) -> None:
        """Hold the lease, and with it slices, only while there is a session that can work on them."""
        keeper = Keeper(
            self._installation, self._settings, self._board, self._say, self._lease_lost, scratch=lambda: self._scratch
        )
        keeper.take_lease()
        keeper.start()
        try:
            self._supervise(spark)
        finally:
            keeper.stop(in_good_order=not self._lease_lost.is_set())

    def _supervise(self, spark: SparkSession) -> None:
        """Keep a query running. Whatever ends one, the next begins at what the tables say."""
        backoff_s = 0.1
        while not (self._stopping.is_set() or self._lease_lost.is_set()):
            started = time.monotonic()
            problem = self._run_query(spark)
            if problem is None:
                return
            self._board.failed(problem)
            if spark.sparkContext._jsc.sc().isStopped():
                raise TidegateError(
                    f"Spark has shut itself down in node {self._settings.name} ({problem}): start the node again; "
                    "other nodes take its slices."
                )
            self._say(f"Node {self._settings.name} starts its query anew: {problem}")
            backoff_s = 0.1 if time.monotonic() - started > 30 else min(backoff_s * 2, _BACKOFF_S_MAX)
            self._stopping.wait(backoff_s)

    def _run_query(self, spark: SparkSession) -> str | None:
        """One query until it ends; the problem that ended it, or None if it was told to."""
        scratch = self._scratch = Scratch(prefix_of(self._state, self._settings.name))
        self._failure = None
        self._board.started()
        self._reported_s = time.monotonic()
        try:
            with closing(self._sink(scratch)) as sink:
                return self._run_to_end(self._start_query(spark, sink, scratch), sink, scratch)
        except (Py4JNetworkError, ConnectionError):
            raise  # no query can run without its JVM
        except (PySparkException, Py4JError, TidegateError, DeltaError, OSError) as error:
            return self._problem(error, scratch)
        finally:
            scratch.remove()

    def _run_to_end(self, query: StreamingQuery, sink: Sink, scratch: Scratch) -> str | None:
        try:
            while query.isActive and not (self._stopping.is_set() or self._lease_lost.is_set()):
                query.awaitTermination(LOOK_S)  # type: ignore[arg-type]
                self._flush(sink)
                self._report(query)
                self._hear(scratch)
                self._purge()
            was_told = query.isActive
        finally:
            if query.isActive:
                query.stop()  # before its sink and its scratch directory go
        if was_told:
            self._flush(sink, all_of_it=True)
        return None if was_told else self._problem(query.exception(), scratch)

    def _flush(self, sink: Sink, *, all_of_it: bool = False) -> None:
        """Commit what batches left behind that did not commit themselves."""
        if committed := sink.flush(all_of_it=all_of_it):
            self._board.committed(committed, time.time())

    def _report(self, query: StreamingQuery) -> None:
        """Pass on what Spark says of its batches; its Python listener would fetch the same field by field."""
        unseen = self._unseen(query)
        seconds_max = time.monotonic() - self._reported_s + REPORTED_S_MAX
        if unseen:
            self._reported_s = time.monotonic()
        for progress in unseen:
            self._board.progressed(plausible(progress, seconds_max))
            if not self._was_ready:
                self._was_ready = True
                self._say(f"Node {self._settings.name} is ready.")

    def _hear(self, scratch: Scratch) -> None:
        """Pass on what does not work in planning, though the query runs."""
        told = evidence.told_in(scratch.evidence)
        for sentence in told:
            if sentence not in self._told:
                self._say(sentence)
        self._told = told
        self._board.alarm(PLANNING, " ".join(told) or None)

    def _unseen(self, query: StreamingQuery) -> list[dict[str, Any]]:
        """Every report since the last look, oldest first: batches may be quicker than looks, and each one counts.

        Read from the newest back, and not with ``recentProgress``, which would fetch a hundred to find the one.
        """
        unseen: list[dict[str, Any]] = []
        last = query._jsq.lastProgress()
        if last is None or self._board.has_seen(json.loads(last.json())):
            return unseen
        for report in reversed(query._jsq.recentProgress()):
            progress = json.loads(report.json())
            if self._board.has_seen(progress):
                break
            unseen.insert(0, progress)
        return unseen

    def _purge(self) -> None:
        try:
            told = self._retention.purge_if_due(self._board.slices(), time.monotonic())
            if told is not None:
                self._board.alarm(RETENTION, " ".join(told) or None)
        except TidegateError as error:  # what is not removed today is removed another day
            self._board.alarm(RETENTION, str(error))

    def _sink(self, scratch: Scratch) -> Sink:
        settings, tables = self._settings, Tables(Path(self._installation.tables))
        task = TaskSettings(
            tables.directory,
            settings.window_s,
            settings.cost_us_per_record,
            self._fsync,
            scratch.evidence,
            settings.identity_horizon_days,
            scratch.alive,
        )
        return Sink(
            tables,
            task,
            settings.snapshot_s,
            self._owned,
            commit_s=settings.commit_ms / 1e3,
            alarm=lambda sentence: self._board.alarm(IDENTITIES, sentence),
            damaged=lambda sentence: self._board.alarm(DAMAGE, sentence),
        )

    def _owned(self) -> dict[int, int]:
        """This node's slices and their epochs, or nothing where the control bus does not say."""
        try:
            owned = self._assignments.current().owned_by(self._settings.name)
        except (BrokerUnavailableError, DamagedDocumentError):
            return {}
        return {slice_: ownership.epoch for slice_, ownership in owned.items()}

    def _start_query(self, spark: SparkSession, sink: Sink, scratch: Scratch) -> StreamingQuery:
        settings = self._settings
        source = (
            spark.readStream.format("tidegate")
            .option("state", str(self._state))
            .option("node", settings.name)
            .option("partitions", str(spark.sparkContext.defaultParallelism))
            .option("rows_per_batch", str(settings.rows_per_batch_max))
            .option("bytes_per_batch", str(settings.bytes_per_batch_max))
            .option("evidence", str(scratch.evidence))
            .option("doubted", json.dumps(self._doubted))
            .load()
        )

        def commit(batch: DataFrame, _: int) -> None:
            try:
                self._board.committed(sink.commit(batch), time.time())
            except BaseException as error:
                self._failure = error
                raise

        return (
            sink.written(source)
            .writeStream.foreachBatch(commit)
            .option("checkpointLocation", str(scratch.checkpoint))
            .trigger(processingTime=f"{settings.trigger_ms} milliseconds")
            .start()
        )

    def _problem(self, error: Exception | None, scratch: Scratch) -> str:
        left = evidence.found_in(scratch.evidence)
        self._doubted |= doubted_in(evidence.all_in(scratch.evidence))
        return problem_of(self._failure, error, left, Path(self._installation.tables))


def _warm_up(spark: SparkSession) -> None:
    """Start the workers before the first reading waits for them."""
    cores = spark.sparkContext.defaultParallelism
    spark.range(cores, numPartitions=cores).mapInArrow(lambda batches: batches, "id bigint").collect()
