"""The probes of all repetitions as one sample, and how sure what follows from it is."""

import math
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tidegate_bench.gateway.checks import ADDED, DIRECT, HAPROXY, OURS, POOLED, SENDS, added_ratio
from tidegate_bench.gateway.stand import SAMPLES

INTERVAL = "interval"
RESAMPLES = 1_000
CONFIDENCE = 0.95

Row = dict[str, Any]
Samples = npt.NDArray[np.float64]


def pooled(rows: Sequence[Row], seed: int) -> list[Row]:
    """The rows without their samples, then a row of every way's pool, and the interval of what is added."""
    samples: dict[str, list[Samples]] = {}
    for row in rows:
        if row["part"] == SENDS:
            samples.setdefault(row["through"], []).append(np.array(row[SAMPLES], dtype=np.float64))
    slim = [{name: value for name, value in row.items() if name != SAMPLES} for row in rows]
    return [*slim, *(_pool(through, found) for through, found in samples.items()), interval(samples, seed)]


def interval(samples: dict[str, list[Samples]], seed: int) -> Row:
    """Bootstrap of whole repetitions, the same of all ways: probes of one repetition meet the same hiccups, so they are
    not drawn apart from each other."""
    chance = random.Random(seed)  # noqa: S311 - seeded draws
    repetitions = range(len(samples[OURS]))

    def ratio(drawn: Sequence[int]) -> float:
        ways = (_percentile(np.concatenate([samples[way][n] for n in drawn]), 99) for way in (DIRECT, HAPROXY, OURS))
        return added_ratio(*ways)

    found = sorted(ratio(chance.choices(repetitions, k=len(repetitions))) for _ in range(RESAMPLES))
    outside = (1 - CONFIDENCE) / 2
    return {
        "part": INTERVAL,
        "check": ADDED,
        "confidence": CONFIDENCE,
        "lowest": round(found[math.floor(outside * RESAMPLES)], 3),
        "value": round(ratio(repetitions), 3),
        "highest": round(found[math.ceil((1 - outside) * RESAMPLES) - 1], 3),
        "resamples": RESAMPLES,
        "seed": seed,
    }


def _pool(through: str, found: list[Samples]) -> Row:
    pool = np.concatenate(found)
    shares = {f"ack_ms_p{share}": round(_percentile(pool, share), 4) for share in (50, 90, 99)}
    return {"part": POOLED, "through": through, "probes": len(pool), **shares}


def _percentile(pool: Samples, share: int) -> float:
    """As ``rig.percentiles`` has it, without putting all in order."""
    rank = max(0, math.ceil(share / 100 * len(pool)) - 1)
    return float(np.partition(pool, rank)[rank])
