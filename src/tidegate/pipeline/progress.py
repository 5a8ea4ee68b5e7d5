"""What a node is doing, in figures that others can act on: per query from Spark, per slice from the sink."""

import json
import os
import threading
import time
from typing import Any

import psutil

from tidegate.pipeline.writing import TaskResult


class ProgressBoard:
    """Written by the query's threads, read by the keeper. ``document`` is None while there is nothing new."""

    def __init__(self, node: str) -> None:
        self._lock = threading.Lock()
        self._node = node
        self._slices: dict[int, dict[str, Any]] = {}
        self._query: dict[str, Any] = {}
        self._totals = {"rows": 0, "repeats": 0, "batches": 0}
        self._committed_at_s = 0.0
        self._problem: str | None = None
        self._alarm: str | None = None
        self._fresh = True

    def committed(self, results: list[TaskResult]) -> None:
        """Called after each commit with what it covered."""
        now = time.time()
        with self._lock:
            self._problem = self._alarm = None
            self._committed_at_s = now
            self._totals["batches"] += 1
            for result in results:
                self._totals["repeats"] += result.repeats
                rows = sum(work.rows for work in result.slices.values())
                for slice_, work in result.slices.items():
                    self._totals["rows"] += work.rows
                    before = self._slices.get(slice_, {"rows": 0, "bytes": 0})
                    self._slices[slice_] = {
                        "epoch": work.step.epoch,
                        "committed": work.step.to,
                        "rows": before["rows"] + work.rows,
                        "bytes": before["bytes"] + work.payload_bytes,
                        "cost_us_per_row": round(result.busy_s * 1e6 / rows, 2),
                        "age_s": round(now - work.oldest_us / 1e6, 3),
                    }
            self._fresh = True

    def progressed(self, progress: dict[str, Any]) -> None:
        """Called with Spark's own report of its last finished batch, as often as one likes."""
        if progress.get("batchId") == self._query.get("batch"):
            return
        source = (progress.get("sources") or [{}])[0]
        ends, latest = _offset(source.get("endOffset")), _offset(source.get("latestOffset"))
        with self._lock:
            held = {int(name): at for name, at in ends.items()}
            self._slices = {slice_: known for slice_, known in self._slices.items() if slice_ in held}
            for slice_, known in self._slices.items():
                known["lag"] = max(0, latest.get(str(slice_), held[slice_])[2] - held[slice_][2])
            self._query = {
                "batch": progress.get("batchId"),
                "input_rows_per_s": progress.get("inputRowsPerSecond"),
                "processed_rows_per_s": progress.get("processedRowsPerSecond"),
                "batch_ms": progress.get("batchDuration"),
                "durations_ms": progress.get("durationMs"),
                "held": sorted(held),
            }
            self._fresh = True

    def failed(self, problem: str) -> None:
        with self._lock:
            self._problem, self._fresh = problem, True
            self._slices = {}

    def alarm(self, sentence: str) -> None:
        with self._lock:
            self._alarm = sentence

    def committed_offsets(self) -> dict[int, int]:
        with self._lock:
            return {slice_: known["committed"] for slice_, known in self._slices.items()}

    def document(self) -> bytes | None:
        with self._lock:
            if not self._fresh:
                return None
            self._fresh = False
            document = {
                "node": self._node,
                "at": time.time(),
                "pid": os.getpid(),
                "memory_mib": round(psutil.Process().memory_info().rss / 2**20),
                "problem": self._problem,
                "alarm": self._alarm,
                "query": self._query,
                "committed_at": self._committed_at_s,
                "totals": self._totals,
                "slices": self._slices,
            }
            return json.dumps(document).encode()


def _offset(text: Any) -> dict[str, list[int]]:
    if isinstance(text, str):
        text = json.loads(text)
    return text if isinstance(text, dict) else {}
