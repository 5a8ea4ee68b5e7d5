"""The demo with devices that do not listen: the same two acts, judged by what the deaf ones cost those that listen.

Deaf devices ask for no advice: gateways hold what they publish beyond the advised rate. So they wait on their own
account, and readings of the others stay as fresh as if everybody listened.
"""

from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from tidegate.demo.performance import Performance
from tidegate.demo.script import Script
from tidegate.demo.verdict import Act, Figures, is_exact, table
from tidegate.devices.fleet_plan import is_deaf
from tidegate.report.checks import Check

DEAF_DELAY_RATIO_MAX = 0.25
DEAF_SHARE_RATIO_MAX = 1.1


class Hearing(msgspec.Struct, frozen=True, kw_only=True):
    """One act by who listens. Ages are counted as for all readings, messages as they arrived in the log in the flood.

    A ratio is the deaf devices' share of the messages over their share of the devices: 1 is fair.
    """

    act: str
    listening_age_s_mean: float
    deaf_age_s_mean: float
    listening_messages: int
    deaf_messages: int
    deaf_share: float  # of the messages
    deaf_share_ratio: float
    deaf_share_ratio_advised: float  # the same from the first advice on: before it nobody is held
    held_clients_max: int
    connections_lost: int


def hearing(act: Act, rows: pa.Table, script: Script) -> Hearing:
    """``rows`` as ``pipeline.ages.Ages.rows`` gives them."""
    committed_s, taken_s, arrived_s, count = (
        rows[name].to_numpy() for name in ("committed_s", "taken_s", "arrived_s", "count")
    )
    deaf = _deaf(rows["device"], script.deaf)
    mine = (taken_s >= act.flood_from_s) & (taken_s <= act.ended_s)
    ages = committed_s - taken_s
    flood = (arrived_s >= act.flood_from_s) & (arrived_s <= act.flood_to_s)
    advised = flood & (arrived_s >= (act.advised_s or act.flood_from_s))
    share, fair = _share(deaf, flood), deaf_devices_share(script)
    return Hearing(
        act=act.name,
        listening_age_s_mean=_mean(ages, count, mine & ~deaf),
        deaf_age_s_mean=_mean(ages, count, mine & deaf),
        listening_messages=int((flood & ~deaf).sum()),
        deaf_messages=int((flood & deaf).sum()),
        deaf_share=round(share, 3),
        deaf_share_ratio=round(share / fair, 3),
        deaf_share_ratio_advised=round(_share(deaf, advised) / fair, 3),
        held_clients_max=act.held_clients_max,
        # A client that was held too long is closed and comes back, so most of these are the same.
        connections_lost=max(int(act.fleet["reconnects"]), act.held_too_long),
    )


def deaf_devices_share(script: Script) -> float:
    devices = script.flood_devices
    return sum(is_deaf(index, script.deaf) for index in range(devices)) / devices


def _deaf(names: pa.ChunkedArray, share: float) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which messages are deaf devices'. A device's number stands behind the last dash of its name."""
    unique = names.unique().to_pylist()
    deaf = {name for name in unique if is_deaf(int(name.rpartition("-")[2]), share)}
    return np.fromiter((name in deaf for name in names.to_pylist()), bool, len(names))


def _share(deaf: np.ndarray[Any, Any], chosen: np.ndarray[Any, Any]) -> float:
    return float(deaf[chosen].mean()) if chosen.any() else 0.0


def _mean(ages: np.ndarray[Any, Any], count: np.ndarray[Any, Any], chosen: np.ndarray[Any, Any]) -> float:
    return round(float(np.average(ages[chosen], weights=count[chosen])), 3) if chosen.any() else 0.0


def checks(ends: tuple[Figures, Figures], heard: tuple[Hearing, Hearing]) -> list[Check]:
    before_s, protected = heard[0].listening_age_s_mean, heard[1]
    ratio = protected.listening_age_s_mean / before_s if before_s and protected.listening_messages else 1.0
    kept = all(one.kept_schedule for one in ends)
    return [
        Check.at_most("deaf_delay_ratio", round(ratio, 3), DEAF_DELAY_RATIO_MAX),
        Check.at_most("deaf_share_ratio", protected.deaf_share_ratio, DEAF_SHARE_RATIO_MAX),
        Check.equal("keep_alives_lost", protected.connections_lost, 0),
        Check.equal("ledger_exact", is_exact(*ends), True),
        Check.equal("fleet_kept_schedule", kept, True),
    ]


def rows_of(without: Hearing, protected: Hearing) -> list[tuple[str, str, str]]:
    """The verdict's rows about who listens, as people read them: what, without, with."""
    both = (without, protected)
    ages = [
        ("mean age, devices that listen", *(f"{one.listening_age_s_mean:.1f} s" for one in both)),
        ("mean age, deaf devices", *(f"{one.deaf_age_s_mean:.1f} s" for one in both)),
        ("deaf devices' share of messages", *(f"{one.deaf_share:.0%}" for one in both)),
        ("most clients held at once", *(f"{one.held_clients_max:,}" for one in both)),
        ("connections lost", *(f"{one.connections_lost:,}" for one in both)),
    ]
    return [(what, before, after) for what, before, after in ages]


class Deaf(Performance):
    def _verdict(
        self, acts: tuple[Act, Act], rows: pa.Table, ends: tuple[Figures, Figures]
    ) -> tuple[list[Check], list[dict[str, Any]]]:
        first, second = (hearing(act, rows, self._script) for act in acts)
        story, share = self._story, deaf_devices_share(self._script)
        story.comparison(
            f"Verdict: the same flood, the same seed, {share:.0%} of the devices deaf",
            [*table(*ends), *rows_of(first, second)],
        )
        story.helped("data of the devices that listen", first.listening_age_s_mean, second.listening_age_s_mean)
        return checks(ends, (first, second)), [msgspec.to_builtins(one) for one in (first, second)]
