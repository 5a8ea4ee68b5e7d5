"""From what an act left behind (tables, acknowledgement files, the fleet's own account) to figures and checks."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from tidegate.report.checks import Check

DELAY_RATIO_MAX = 0.2
CAPACITY_USED_MIN = 0.9
# The first seconds of a flood fill the batches: the node is not yet at its limit.
FILLING_S = 3.0


class NodeSpan(msgspec.Struct, frozen=True, kw_only=True):
    """A processing node's process during an act: started, given slices, first commit after that, ended (Unix time)."""

    name: str
    started_s: float
    held_s: float | None = None
    working_s: float | None = None
    ended_s: float | None = None


class Act(msgspec.Struct, frozen=True, kw_only=True):
    """What was noted while an act ran. Times are Unix time."""

    name: str
    protected: bool
    began_s: float
    flood_from_s: float
    flood_to_s: float
    ended_s: float
    advised_s: float | None  # when devices were first asked to send less often
    interval_s_max: float
    interval_s_end: float  # 0: devices are back at their default
    fleet: dict[str, Any]
    acknowledged: int
    lost: int
    duplicated: int
    nodes: tuple[NodeSpan, ...] = ()
    held_clients_max: int = 0  # at one moment, in all gateways
    held_too_long: int = 0  # clients that gateways closed because they had waited too long


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What an act comes to, counted from the flood's beginning: before it, one act is longer than the other."""

    act: str
    protected: bool
    age_s_mean: float
    age_s_worst: float
    messages: int
    readings: int
    acknowledged: int
    lost: int
    duplicated: int
    processed_per_s: float  # while the node was at its limit
    interval_s_max: float
    interval_s_end: float
    kept_schedule: bool


def figures(act: Act, rows: pa.Table) -> Figures:
    """``rows`` as ``pipeline.ages.Ages.rows`` gives them."""
    committed_s, taken_s, count = (rows[name].to_numpy() for name in ("committed_s", "taken_s", "count"))
    mine = (taken_s >= act.flood_from_s) & (taken_s <= act.ended_s)
    ages = committed_s[mine] - taken_s[mine]
    busy_from_s = act.flood_from_s + FILLING_S if act.advised_s is None else act.advised_s
    return Figures(
        act=act.name,
        protected=act.protected,
        age_s_mean=round(float(np.average(ages, weights=count[mine])), 3) if mine.any() else 0.0,
        age_s_worst=round(float(ages.max(initial=0.0)), 3),
        messages=int(mine.sum()),
        readings=int(count[mine].sum()),
        acknowledged=act.acknowledged,
        lost=act.lost,
        duplicated=act.duplicated,
        processed_per_s=round(rate(committed_s, busy_from_s, act.flood_to_s), 1),
        interval_s_max=round(act.interval_s_max, 3),
        interval_s_end=round(act.interval_s_end, 3),
        kept_schedule=bool(act.fleet["kept_schedule"]),
    )


def rate(committed_s: np.ndarray, from_s: float, to_s: float) -> float:
    """Messages a second between the first and the last commit within a span: a batch cut in two counts for neither."""
    inside = committed_s[(committed_s >= from_s) & (committed_s <= to_s)]
    moments, sizes = np.unique(inside, return_counts=True)
    if len(moments) < 2:
        return 0.0
    return float(sizes[1:].sum() / (moments[-1] - moments[0]))


def by_second(act: Act, rows: pa.Table) -> list[dict[str, Any]]:
    """The act second by second: what the checks can be recomputed from, and what a plot would show.

    The last second ends with the act: what is committed behind it belongs to the next one.
    """
    committed_s, taken_s, count = (rows[name].to_numpy() for name in ("committed_s", "taken_s", "count"))
    found = []
    for second in range(int(act.ended_s - act.began_s) + 1):
        start_s = act.began_s + second
        inside = (committed_s >= start_s) & (committed_s < start_s + 1) & (committed_s <= act.ended_s)
        ages = committed_s[inside] - taken_s[inside]
        found.append(
            {
                "act": act.name,
                "second": second,
                "messages": int(inside.sum()),
                "readings": int(count[inside].sum()),
                "age_s_sum": round(float((ages * count[inside]).sum()), 3),
                "age_s_max": round(float(ages.max(initial=0.0)), 3),
            }
        )
    return found


def checks(without: Figures, protected: Figures) -> list[Check]:
    delay_ratio = protected.age_s_mean / without.age_s_mean if without.age_s_mean else 1.0
    capacity_used = protected.processed_per_s / without.processed_per_s if without.processed_per_s else 0.0
    return [
        Check.at_most("delay_ratio", round(delay_ratio, 3), DELAY_RATIO_MAX),
        Check.at_least("capacity_used", round(capacity_used, 3), CAPACITY_USED_MIN),
        Check.equal("ledger_exact", is_exact(without, protected), True),
        Check.equal("fleet_kept_schedule", without.kept_schedule and protected.kept_schedule, True),
    ]


def is_exact(*ends: Figures) -> bool:
    return all(one.lost == 0 and one.duplicated == 0 and one.acknowledged > 0 for one in ends)


def table(without: Figures, protected: Figures) -> list[tuple[str, str, str]]:
    """The verdict as people read it: what, without, with."""

    def stored(one: Figures) -> str:
        return f"{one.acknowledged - one.lost:,} of {one.acknowledged:,}" + (
            f", {one.duplicated:,} twice" if one.duplicated else ", each once"
        )

    rows: Sequence[tuple[str, str, str]] = [
        ("mean age of data", f"{without.age_s_mean:.1f} s", f"{protected.age_s_mean:.1f} s"),
        ("worst age of data", f"{without.age_s_worst:.1f} s", f"{protected.age_s_worst:.1f} s"),
        ("messages sent", f"{without.messages:,}", f"{protected.messages:,}"),
        ("readings they stand for", f"{without.readings:,}", f"{protected.readings:,}"),
        ("acknowledged and stored", stored(without), stored(protected)),
        ("processed at the limit", f"{without.processed_per_s:,.0f} msg/s", f"{protected.processed_per_s:,.0f} msg/s"),
        ("longest advised interval", "none", f"{protected.interval_s_max:.2g} s"),
    ]
    return list(rows)


def ledger_of(tables: Path, acks: Path) -> dict[str, int]:
    """Acknowledged, lost and duplicated of one act, against the tables as they are now."""
    from tidegate.devices.acknowledgements import read_directory  # noqa: PLC0415 - Arrow is slow to import
    from tidegate.pipeline.tables.ledger import check, read_identities  # noqa: PLC0415

    found = check(read_directory(acks), read_identities(tables))
    return {"acknowledged": found.acknowledged, "lost": found.lost, "duplicated": found.duplicated}
