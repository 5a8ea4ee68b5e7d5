"""``tidegate bench moves``: slices moved between two running nodes while readings keep coming.

``first_row_s`` is the time from the command to the first commit of the slice by its taker. ``unmoved_lag_batches`` is
how many batches the slices that stay fall behind meanwhile: the longest pause between two of their commits around a
move, over the usual pause, less one.
"""

import itertools
import random
import statistics
import time
from functools import partial
from pathlib import Path
from typing import Any

from tidegate.brokers.settings import BrokerSettings
from tidegate.report.checks import Check, Report
from tidegate.report.progress import Progress
from tidegate_bench.nodes.table_log import Advance, TableLog
from tidegate_bench.rig.following import asked_regularly
from tidegate_bench.rig.installation import Rig
from tidegate_bench.rig.percentiles import percentile
from tidegate_bench.rig.spreads import spread

ROUNDS = 24
RATE = 4_000
SEED = 7
NODES = ("left", "right")
PAUSE_S = 1.5


def run(progress: Progress, out: Path | None, *, rounds: int = ROUNDS, seed: int = SEED) -> Report:
    """``rounds`` is how many slices are moved, ``seed`` chooses which and when."""
    started_s = time.monotonic()
    with Rig(BrokerSettings(nodes=1, slices=8), out) as rig:
        progress.step("Starting two nodes.")
        for name in NODES:
            rig.start_node(name, trigger_ms="250")
            rig.wait(f"node {name}", partial(_lives, rig, name))
        rig.wait("all slices to be owned", lambda: all(hold.owner for hold in rig.assignments.current().ownerships))
        load = rig.start_load("moves", devices=200, connections=8, rate=RATE, seconds=600 + 10 * rounds, seed=seed)
        log = TableLog(Path(rig.installation.tables) / "readings")
        progress.step("Spreading the slices over both nodes.")
        _spread(rig)
        rig.wait("both nodes to commit", lambda: _both_commit(rig, log))
        time.sleep(4.0)
        moves = _move_slices(rig, progress, log, rounds, random.Random(seed))  # noqa: S311 - seeded
        progress.step("Waiting for the load and the last commit.")
        load.ask_to_stop()
        with asked_regularly(log.follow):
            summary = load.last_answer()
            rig.wait("every acknowledged reading", lambda: not rig.ledger().lost, 120)
        verdict = rig.ledger()
    rows = [_row(move, log.advances) for move in moves]
    firsts = sorted(row["first_row_s"] for row in rows)
    lags = sorted(lag for row in rows for lag in row["unmoved_lag_batches"])
    rows.append(
        {
            "fleet": summary,
            "acknowledged": verdict.acknowledged,
            "lost": verdict.lost,
            "duplicated": verdict.duplicated,
            "seed": seed,
        }
    )
    rows += [spread("first_row_s_p50", firsts), spread("unmoved_lag_batches", lags)]
    checks = [
        Check.at_most("first_row_s_p50", round(statistics.median(firsts), 3), 1.0),
        Check.at_most("first_row_s_p95", round(percentile(firsts, 95), 3), 2.5),
        Check.at_most("unmoved_lag_batches", round(percentile(lags, 95), 2), 1.0),
        Check.equal("ledger_exact", verdict.holds and summary["acked"] == summary["sent"], True),
    ]
    return Report("bench moves", rows, checks, round(time.monotonic() - started_s, 1))


def _lives(rig: Rig, name: str) -> bool:
    return name in rig.assignments.alive()


def _spread(rig: Rig) -> None:
    """Half of the slices to each node, so that moves go both ways."""
    for slice_ in range(rig.installation.slices):
        rig.assignments.move(slice_, NODES[slice_ % 2])
    rig.wait(
        "the slices to be spread",
        lambda: (
            [hold.owner for hold in rig.assignments.current().ownerships]
            == [NODES[s % 2] for s in range(rig.installation.slices)]
        ),
    )


def _both_commit(rig: Rig, log: TableLog) -> bool:
    log.follow()
    epochs = {slice_: hold.epoch for slice_, hold in enumerate(rig.assignments.current().ownerships)}
    return {a.slice for a in log.advances if a.files and a.epoch == epochs[a.slice]} == set(epochs)


def _move_slices(
    rig: Rig, progress: Progress, log: TableLog, rounds: int, chance: random.Random
) -> list[dict[str, Any]]:
    moves = []
    for number in range(rounds):
        progress.step(f"Move {number + 1} of {rounds}.")
        slice_ = chance.randrange(rig.installation.slices)
        giver = rig.assignments.current().ownerships[slice_].owner
        taker = NODES[1] if giver == NODES[0] else NODES[0]
        commanded_s = time.time()
        refusal = rig.assignments.move(slice_, taker)
        assert refusal is None, refusal
        epoch = 0

        def taken(slice_: int = slice_, taker: str = taker) -> bool:
            nonlocal epoch
            hold = rig.assignments.current().ownerships[slice_]
            epoch = hold.epoch
            log.follow()
            return hold.owner == taker and any(a.files and a.slice == slice_ and a.epoch == epoch for a in log.advances)

        rig.wait(f"slice {slice_} on {taker}", taken, 30)
        moves.append(
            {
                "move": number,
                "slice": slice_,
                "giver": giver,
                "taker": taker,
                "commanded_s": commanded_s,
                "epoch": epoch,
            }
        )
        time.sleep(PAUSE_S * chance.uniform(0.5, 1.5))
    return moves


def _row(move: dict[str, Any], advances: list[Advance]) -> dict[str, Any]:
    first = next(a for a in advances if a.files and a.slice == move["slice"] and a.epoch == move["epoch"])
    lags = []
    for slice_ in {a.slice for a in advances} - {move["slice"]}:
        stamps = [a.at_s for a in advances if a.slice == slice_ and a.files]
        pauses = [(later, later - earlier) for earlier, later in itertools.pairwise(stamps)]
        usual_s = statistics.median(pause for _, pause in pauses)
        around = [pause for at, pause in pauses if move["commanded_s"] <= at <= first.at_s + usual_s]
        lags.append(round(max(around, default=usual_s) / usual_s - 1, 2))
    return {**move, "first_row_s": round(first.at_s - move["commanded_s"], 3), "unmoved_lag_batches": lags}
