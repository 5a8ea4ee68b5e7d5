"""``tidegate bench crashes``: rounds of faults, on an installation that is made anew every few rounds.

After each round its row is appended to ``crashes-rounds.jsonl`` in the directory given by ``--out``; a run with the
same directory and seed goes on where that ends.
"""

import contextlib
import json
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from deltalake.exceptions import DeltaError

from tidegate.model.errors import TidegateError
from tidegate.report.checks import Report
from tidegate.report.progress import Progress
from tidegate_bench.crashes.checks import checks_of, ends_a_block, unfinished
from tidegate_bench.crashes.judging import Book
from tidegate_bench.crashes.rounds import Round
from tidegate_bench.crashes.schedule import plan_of
from tidegate_bench.crashes.site import SLICES, WINDOW_S, Site

ROUNDS = 100
SEED = 20
# A table of ten rounds is read in a second; one of a hundred would not be.
BLOCK_ROUNDS = 10
FILE = "crashes-rounds.jsonl"


def run(progress: Progress, out: Path | None, *, rounds: int = ROUNDS, seed: int = SEED) -> Report:
    started_s = time.monotonic()
    with _directory(out) as directory, _ended_by_signals():
        rows = kept_rows(directory / FILE, seed)
        while len(rows) < rounds:
            fresh = _block(directory, seed, len(rows), min(rounds, len(rows) + BLOCK_ROUNDS), progress)
            rows += fresh
    return Report("bench crashes", rows, checks_of(rows, rounds), round(time.monotonic() - started_s, 1))


def kept_rows(path: Path, seed: int) -> list[dict[str, Any]]:
    """Those of this seed, from the first round on without a gap; a torn last line is not one."""
    rows: dict[int, dict[str, Any]] = {}
    text = path.read_text() if path.exists() else ""
    for line in text[: text.rfind("\n") + 1].splitlines():
        row = json.loads(line)
        if row["seed"] == seed:
            rows[row["round"]] = row
    kept: list[dict[str, Any]] = []
    while len(kept) in rows:
        kept.append(rows[len(kept)])
    return kept


def _block(directory: Path, seed: int, first: int, end: int, progress: Progress) -> list[dict[str, Any]]:
    """Rounds on one installation, until the block is full or the installation is not fit for another one."""
    state = directory / f"seed-{seed}-round-{first}"
    shutil.rmtree(state, ignore_errors=True)
    rows: list[dict[str, Any]] = []
    book = Book(WINDOW_S)
    with Site(state, f"{seed}/{first}", progress) as site:
        for number in range(first, end):
            row = _round(site, book, seed, number, progress)
            with (directory / FILE).open("a") as file:
                file.write(json.dumps(row) + "\n")
            rows.append(row)
            if ends_a_block(row):
                break
    if not any(_is_evidence(row) for row in rows):
        shutil.rmtree(state, ignore_errors=True)
    return rows


def _round(site: Site, book: Book, seed: int, number: int, progress: Progress) -> dict[str, Any]:
    plan = plan_of(seed, number, SLICES)
    names = " and ".join(f"{fault.kind} ({fault.victim})" for fault in plan.faults)
    progress.step(f"Round {number}: {names}.")
    began_s = time.monotonic()
    try:
        row = Round(site, plan, book).play()
    except (TidegateError, DeltaError, OSError) as error:
        row = {"faults": msgspec.to_builtins(plan.faults), **unfinished(repr(error), SLICES)}
    return {"round": number, "seed": seed, **row, "seconds": round(time.monotonic() - began_s, 1)}


def _is_evidence(row: dict[str, Any]) -> bool:
    wrong = ("duplicated", "wrong_values", "wrong_means", "unrecovered", "silent", "rejected")
    return ends_a_block(row) or any(row[name] for name in wrong)


@contextlib.contextmanager
def _directory(out: Path | None) -> Iterator[Path]:
    if out is not None:
        yield out.absolute()
        return
    with tempfile.TemporaryDirectory(prefix="tidegate-crashes-") as made:
        yield Path(made)


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[None]:
    """SIGTERM ends a run like Ctrl-C does: processes and disks must not stay behind."""

    def end(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
