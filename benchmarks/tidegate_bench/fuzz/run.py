"""A million cases of hostile bytes for everything that reads MQTT, led by which lines they reach.

Whatever is raised but a ``Violation`` is a crash, and so is a wrong result: packets that read differently once they are
written, a scanner that depends on how the network cuts, a compiled scanner that differs from its source. A case that
takes more than a second is a hang. The bytes of each are kept.
"""

import contextlib
import importlib.util
import os
import re
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tidegate.model.errors import TidegateError, UserError
from tidegate.report.checks import Check, Report
from tidegate.report.progress import Progress
from tidegate_bench.rig.children import Child

CASES = 1_000_000
PROCESSES_MAX = 2
ANSWER_S_MAX = 60.0
_EDGES = re.compile(rb"cov: (\d+)")


def run(progress: Progress, out: Path | None, *, rounds: int = 1) -> Report:
    """A round is a million cases."""
    if importlib.util.find_spec("atheris") is None:
        raise UserError(
            "The fuzzer atheris is not installed: run 'make setup', or pip install atheris on Linux x86-64."
        )
    began_s = time.monotonic()
    with contextlib.ExitStack() as opened:
        directory = out or Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="tidegate-fuzz-")))
        processes = min(PROCESSES_MAX, os.cpu_count() or 1)
        cases = rounds * CASES
        each = -(-cases // processes)
        children = [
            opened.enter_context(Child("fuzz.child", cases=each, seed=seed, directory=directory.resolve()))
            for seed in range(1, processes + 1)
        ]
        found = watch(children, directory, progress, cases)
        rows = rows_of(found, edges=max(map(edges_in, directory.glob("fuzz-*.log")), default=0))
    return Report("fuzz", rows, checks(rows, cases), round(time.monotonic() - began_s, 1))


def watch(children: list[Child], directory: Path, progress: Progress, wanted: int) -> list[dict[str, Any]]:
    """The last word of each. One that dies is a crash, or a hang that the fuzzer ended, of its own."""
    last: dict[int, dict[str, Any]] = {place: {} for place in range(len(children))}
    running = dict(enumerate(children))
    while running:
        for place, child in list(running.items()):
            try:
                last[place] = child.answer(ANSWER_S_MAX)
            except TidegateError:
                is_stuck = any(directory.glob("timeout-*"))
                last[place].setdefault("hangs" if is_stuck else "crashes", {})["process"] = 1
                del running[place]
            else:
                if last[place]["is_done"]:
                    del running[place]
        cases = sum(sum(said.get("cases", {}).values()) for said in last.values())
        crashes = sum(sum(said.get("crashes", {}).values()) for said in last.values())
        progress.update(f"{cases:,} of {wanted:,} cases, {crashes:,} crashes")
    return list(last.values())


def rows_of(found: list[dict[str, Any]], *, edges: int) -> list[dict[str, Any]]:
    """One for each target. ``edges`` are the jumps in the code that cases have reached, in all targets together."""
    sums = {what: Counter[str]() for what in ("cases", "crashes", "hangs")}
    for said in found:
        for what, counts in sums.items():
            counts.update(said.get(what, {}))
    names = sorted({name for counts in sums.values() for name in counts})
    return [{"target": name, **{what: counts[name] for what, counts in sums.items()}, "edges": edges} for name in names]


def edges_in(log: Path) -> int:
    return max((int(found) for found in _EDGES.findall(log.read_bytes())), default=0)


def checks(rows: list[dict[str, Any]], wanted: int = CASES) -> list[Check]:
    def total(what: str) -> int:
        return sum(row[what] for row in rows)

    return [
        Check.at_least("fuzz_cases", total("cases"), wanted),
        Check.equal("fuzz_crashes", total("crashes"), 0),
        Check.equal("fuzz_hangs", total("hangs"), 0),
    ]
