"""Many simulated runs: in parallel, with progress, and kept, so that a stopped experiment goes on where it was.

A run is kept under a name made of everything it depends on: scenario, strategy, seed and the code that was run. So a
change of any of them runs it anew, and nothing stale is ever reported.
"""

import functools
import hashlib
import multiprocessing
import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from tidegate import control, devices, loop, model, sim
from tidegate.sim.run import simulate
from tidegate.sim.scenario import Scenario, Strategy

KEPT_FILE = "runs.jsonl"
# What an experiment needs of a series, beyond the figures of the whole run: how old data was, second by second.
SERIES = ("at_s", "delay_s", "head_age_s", "departures")

ReportRow = dict[str, Any]
Tell = Callable[[str], None]


class Job(msgspec.Struct, frozen=True, kw_only=True):
    scenario: Scenario
    strategy: Strategy
    seed: int
    series: bool = False

    @property
    def name(self) -> str:
        content = msgspec.json.encode([self.scenario, self.strategy, self.seed, self.series], order="deterministic")
        return hashlib.sha256(code_version().encode() + content).hexdigest()[:24]


@functools.cache
def code_version() -> str:
    """A digest of every file that a run executes."""
    digest = hashlib.sha256()
    for package in (control, devices, loop, model, sim):
        for file in sorted(Path(package.__path__[0]).rglob("*.py")):
            digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()


def run_all(jobs: Sequence[Job], tell: Tell, out: Path | None = None) -> list[ReportRow]:
    """The rows of all jobs, in their order."""
    kept = _kept(out)
    names = [job.name for job in jobs]
    missing = {name: job for name, job in zip(names, jobs, strict=True) if name not in kept}
    if missing:
        _run(missing, kept, tell, out, len(jobs))
    return [kept[name] for name in names]


def _run(missing: dict[str, Job], kept: dict[str, ReportRow], tell: Tell, out: Path | None, total: int) -> None:
    workers = min(os.cpu_count() or 1, len(missing))
    # Spawned, not forked: the progress line has a thread, and a fork would copy its lock as it happens to be.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_leave_interrupts_to_the_parent)
    file = None if out is None else _opened(out / KEPT_FILE)
    try:
        waiting = {pool.submit(_row, job): name for name, job in missing.items()}
        for done, future in enumerate(as_completed(waiting), start=1):
            name = waiting[future]
            kept[name] = future.result()
            if file is not None:
                file.write(msgspec.json.encode({"run": name, "row": kept[name]}) + b"\n")
                file.flush()
            tell(f"{total - len(missing) + done} of {total} runs")
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        if file is not None:
            file.close()


def _opened(path: Path) -> BinaryIO:
    """To append whole lines, also behind one that was cut off."""
    cut_off = path.exists() and not path.read_bytes().endswith(b"\n") and path.stat().st_size > 0
    file = path.open("ab")
    file.write(b"\n" if cut_off else b"")
    return file


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _row(job: Job) -> ReportRow:
    result = simulate(job.scenario, job.strategy, job.seed)
    row = result.row()
    if job.series:
        row["series"] = {name: getattr(result.series, name) for name in SERIES}
    return row


def _kept(out: Path | None) -> dict[str, ReportRow]:
    """Runs of an earlier try; a last line that was cut off is run again."""
    path = None if out is None else out / KEPT_FILE
    kept: dict[str, ReportRow] = {}
    if path is None or not path.exists():
        return kept
    for line in path.read_bytes().splitlines():
        try:
            entry = msgspec.json.decode(line)
            kept[entry["run"]] = entry["row"]
        except (msgspec.DecodeError, KeyError, TypeError):
            continue
    return kept
