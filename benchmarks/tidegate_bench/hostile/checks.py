"""From what was measured to the checks. Pure."""

from collections.abc import Sequence

import msgspec

from tidegate.report.checks import Check
from tidegate_bench.hostile.attacking import AttackResult
from tidegate_bench.rig.percentiles import percentile

P99_RATIO_MAX = 2.0
MEMORY_GROWTH_MIB_MAX = 20.0


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """Others' delays while nobody attacks, and right afterwards while somebody does; and how long those waited for
    their CONNACK who came then."""

    calm_s: tuple[float, ...]
    hostile_s: tuple[float, ...]
    calm_new_s: tuple[float, ...]
    hostile_new_s: tuple[float, ...]

    @property
    def p99_ratio(self) -> float:
        return percentile(sorted(self.hostile_s), 99) / percentile(sorted(self.calm_s), 99)

    @property
    def new_p99_ratio(self) -> float:
        return percentile(sorted(self.hostile_new_s), 99) / percentile(sorted(self.calm_new_s), 99)

    def row(self, number: int) -> dict[str, float | int]:
        found: dict[str, float | int] = {"round": number}
        for name, delays in (("calm", sorted(self.calm_s)), ("hostile", sorted(self.hostile_s))):
            found[f"{name}_publishes"] = len(delays)
            found[f"{name}_p50_ms"] = round(1000 * percentile(delays, 50), 3)
            found[f"{name}_p99_ms"] = round(1000 * percentile(delays, 99), 3)
        for name, delays in (("calm_new", sorted(self.calm_new_s)), ("hostile_new", sorted(self.hostile_new_s))):
            found[f"{name}_clients"] = len(delays)
            found[f"{name}_p99_ms"] = round(1000 * percentile(delays, 99), 3)
        return {**found, "p99_ratio": round(self.p99_ratio, 2), "new_p99_ratio": round(self.new_p99_ratio, 2)}


def pooled(rounds: Sequence[Round]) -> Round:
    """All rounds as one: an attack that hurts in a single round shows, a machine that stutters once does not decide."""
    return Round(
        calm_s=tuple(delay for one in rounds for delay in one.calm_s),
        hostile_s=tuple(delay for one in rounds for delay in one.hostile_s),
        calm_new_s=tuple(delay for one in rounds for delay in one.calm_new_s),
        hostile_new_s=tuple(delay for one in rounds for delay in one.hostile_new_s),
    )


def checks(
    rounds: Sequence[Round], results: Sequence[AttackResult], *, memory_growth_mib: float, others_lost: int
) -> list[Check]:
    return [
        Check.at_most("others_p99_ratio", round(pooled(rounds).p99_ratio, 2), P99_RATIO_MAX),
        Check.at_most("new_clients_p99_ratio", round(pooled(rounds).new_p99_ratio, 2), P99_RATIO_MAX),
        Check.equal("others_lost", others_lost, 0),
        Check.at_most("memory_growth_mib", round(memory_growth_mib, 1), MEMORY_GROWTH_MIB_MAX),
        *(Check.equal(f"clean_close[{result.name}]", result.clean == result.attempts > 0, True) for result in results),
    ]
