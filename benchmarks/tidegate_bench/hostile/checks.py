"""From what was measured to the checks. Pure."""

from collections.abc import Sequence
from typing import Any

import msgspec

from tidegate.report.checks import Check
from tidegate_bench.hostile.attacking import AttackResult
from tidegate_bench.hostile.waits import Sample, together
from tidegate_bench.rig.percentiles import percentile

P99_RATIO_MAX = 2.0
MEMORY_GROWTH_MIB_MAX = 20.0


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """What others met while nobody attacked, and while somebody did."""

    calm: Sample
    hostile: Sample

    @property
    def p99_ratio(self) -> float:
        return _p99_ratio(self.calm.delays_s, self.hostile.delays_s)

    @property
    def new_p99_ratio(self) -> float:
        return _p99_ratio(self.calm.connects_s, self.hostile.connects_s)

    @property
    def lost(self) -> int:
        return self.calm.lost + self.hostile.lost

    def row(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for phase, sample in (("calm", self.calm), ("hostile", self.hostile)):
            for what, delays_s in (("publishes", sample.delays_s), ("new", sample.connects_s), ("http", sample.http_s)):
                if delays_s:
                    found |= _row(f"{phase}_{what}", sorted(delays_s))
            found[f"{phase}_lost"] = sample.lost
        found |= {"p99_ratio": round(self.p99_ratio, 2), "new_p99_ratio": round(self.new_p99_ratio, 2)}
        if self.calm.http_s:
            found["http_p99_ratio"] = round(_p99_ratio(self.calm.http_s, self.hostile.http_s), 2)
        return found


def _row(name: str, ordered_s: list[float]) -> dict[str, float | int]:
    found = {f"{name}_p{share}_ms": round(1000 * percentile(ordered_s, share), 3) for share in (50, 99)}
    return {name: len(ordered_s), **found}


def _p99_ratio(calm_s: Sequence[float], hostile_s: Sequence[float]) -> float:
    """Nobody served in the whole time is worse than any delay."""
    if not hostile_s or not calm_s:
        return float("inf")
    return percentile(sorted(hostile_s), 99) / percentile(sorted(calm_s), 99)


def pooled(rounds: Sequence[Round]) -> Round:
    """All rounds as one: an attack that hurts in a single round shows, a machine that stutters once does not decide."""
    return Round(calm=together([one.calm for one in rounds]), hostile=together([one.hostile for one in rounds]))


def checks(rounds: Sequence[Round], results: Sequence[AttackResult], *, memory_growth_mib: float) -> list[Check]:
    """``rounds`` are those of attacks and those of sieges."""
    every = pooled(rounds)
    return [
        Check.at_most("others_p99_ratio", round(every.p99_ratio, 2), P99_RATIO_MAX),
        Check.at_most("new_clients_p99_ratio", round(every.new_p99_ratio, 2), P99_RATIO_MAX),
        Check.equal("others_lost", every.lost, 0),
        Check.at_most("memory_growth_mib", round(memory_growth_mib, 1), MEMORY_GROWTH_MIB_MAX),
        *(Check.equal(f"clean_close[{result.name}]", result.clean == result.attempts > 0, True) for result in results),
    ]


def absence_checks(bytes_kept: int, bytes_max: int, alarm: str | None, name: str) -> list[Check]:
    """An absent session that keeps too much is ended, and said to be; then nothing is kept for it."""
    return [
        Check.at_most("absent_bytes_bounded", bytes_kept, bytes_max),
        Check.equal("absent_session_ended", alarm is not None and name in alarm, True),
    ]
