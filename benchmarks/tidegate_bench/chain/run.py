"""``tidegate bench chain``: the highest rate that the whole chain sustains, and which part bounds it.

Devices publish at QoS 1 through a gateway; one processing node with shipped settings and no artificial cost stores the
readings. A rate is sustained where ninety-nine of a hundred readings are in the table within two seconds of the moment
they were taken, for two minutes. Four configurations: one and three brokers, each surviving the death of processes or
a power failure. Beside them, with the same load: what the broker alone acknowledges, what it acknowledges behind a
gateway, and what the load can do alone.
"""

import os
import statistics
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec

from tidegate.model.errors import UserError
from tidegate.report.checks import Check, Report
from tidegate.report.progress import Progress
from tidegate_bench.chain import alone, shares
from tidegate_bench.chain.alone import BROKER_ALONE, LOAD_ALONE
from tidegate_bench.chain.search import Attempt, next_attempt, sustained_per_s
from tidegate_bench.chain.site import Configuration, Site, started_chain, started_load
from tidegate_bench.rig.parts import Parts

CONFIGURATIONS = tuple(
    Configuration(brokers=brokers, durability=durability)
    for durability in ("process-kill", "power-loss")
    for brokers in (1, 3)
)
MACHINE, ATTEMPT, SUSTAINED = "machine", "attempt", "sustained"
CHAIN_VS_BROKER_MIN = 0.1
# The load has to be able to do this much more than it is asked for.
LOAD_VS_BROKER_MIN = 1.5
# Of all processors. A little is the kernel's own work for the chain, which no process is charged for.
OTHERS_SHARE_MAX = 0.15


class Times(msgspec.Struct, frozen=True, kw_only=True):
    """How long everything takes; tests and trials take less."""

    warm_s: float = 5.0
    probe_s: float = 15.0
    proof_s: float = 120.0
    alone_s: float = 8.0
    alone_rounds: int = 3


def run(progress: Progress, out: Path | None) -> Report:
    return measured(progress, out, Times(), CONFIGURATIONS)


def measured(progress: Progress, out: Path | None, times: Times, configurations: tuple[Configuration, ...]) -> Report:
    began_s = time.monotonic()
    parts = Parts(None if out is None else out / "parts")
    rows = parts.done("alone", lambda: [_machine(times), *alone.measured(progress, times.alone_s, times.alone_rounds)])
    if rows[0]["times"] != msgspec.to_builtins(times):
        raise UserError(f"{out} has parts of a run that took other times: name an empty directory with --out.")
    for configuration in configurations:
        rows += _searched(configuration, parts, progress, out, times)
    return Report("bench chain", rows, checks(rows), round(time.monotonic() - began_s, 1))


# -- what the chain sustains


def _searched(
    configuration: Configuration, parts: Parts, progress: Progress, out: Path | None, times: Times
) -> list[dict[str, Any]]:
    """Every attempt as a row, and what they come to. The chain is started when the first attempt has to be made."""
    made: list[Attempt] = []
    rows: list[dict[str, Any]] = []
    with ExitStack() as opened:
        site: Site | None = None
        while (attempt := next_attempt(made)) is not None:

            def make(attempt: Attempt = attempt) -> list[dict[str, Any]]:
                nonlocal site
                if site is None:
                    site = _opened(configuration, opened, progress, out)
                    site.hold(attempt.rate_per_s / 2, times.warm_s, times.warm_s)  # what is compiled at first
                kind = "proof" if attempt.is_proof else "probe"
                progress.step(f"{configuration.name}: {kind} of {attempt.rate_per_s:,.0f} readings a second.")
                seconds = times.proof_s if attempt.is_proof else times.probe_s
                row = site.hold(attempt.rate_per_s, times.warm_s, seconds)
                return [{"part": ATTEMPT, **msgspec.to_builtins(configuration), "is_proof": attempt.is_proof, **row}]

            (row,) = parts.done(f"{configuration.name}-{len(made) + 1}", make)
            rows.append(row)
            made.append(msgspec.structs.replace(attempt, held=row["held"], disturbed=is_disturbed(row, _processors())))
    return [*rows, sustained(configuration, made, rows, _processors())]


def _opened(configuration: Configuration, opened: ExitStack, progress: Progress, out: Path | None) -> Site:
    chain = opened.enter_context(started_chain(configuration, 1, out, progress))
    return Site(chain, opened.enter_context(started_load(chain.state, chain.installation.gateway_mqtt)))


def _machine(times: Times) -> dict[str, Any]:
    return {"part": MACHINE, "processors": _processors(), "times": msgspec.to_builtins(times)}


def _processors() -> int:
    return len(os.sched_getaffinity(0))


# -- from rows to checks


def sustained(
    configuration: Configuration, made: list[Attempt], rows: list[dict[str, Any]], processors: int
) -> dict[str, Any]:
    """What a configuration's attempts come to. What bounds it shows in the lowest rate that was not held."""
    rate_per_s = sustained_per_s(made)
    proofs = [row for row in rows if row["is_proof"] and row["held"]]
    beyond = [row for row in rows if not row["held"] and row["rate_per_s"] > rate_per_s]
    border = min(beyond or proofs, key=lambda row: (is_disturbed(row, processors), row["rate_per_s"]))
    name, why = shares.bottleneck(border, processors)
    shown = proofs[-1] if proofs else border
    return {
        "part": SUSTAINED,
        **msgspec.to_builtins(configuration),
        "sustained_per_s": round(rate_per_s),
        **{key: shown[key] for key in ("age_s_p50", "age_s_p99", "ack_ms_p50", "ack_ms_p99", "stored", "acked")},
        **{f"{part}_share": share for part, share in shown["shares"].items()},
        "bottleneck": name,
        "bottleneck_why": why,
        "bottleneck_at_per_s": border["rate_per_s"],
    }


def is_disturbed(row: dict[str, Any], processors: int) -> bool:
    """Whether so much else ran on the machine that an attempt says little."""
    return bool(row["shares"]["others"] > OTHERS_SHARE_MAX * processors)


def flat_out_per_s(rows: list[dict[str, Any]], part: str) -> float:
    return float(statistics.median(row["acked_per_s"] for row in rows if row["part"] == part))


def checks(rows: list[dict[str, Any]]) -> list[Check]:
    found = [row for row in rows if row["part"] == SUSTAINED]
    first = next(row["sustained_per_s"] for row in found if (row["brokers"], row["durability"]) == (1, "process-kill"))
    broker_per_s = flat_out_per_s(rows, BROKER_ALONE)
    attempts = [row for row in rows if row["part"] == ATTEMPT]
    lost = sum(row["acked"] - row["stored"] for row in attempts if row["stored"] < row["acked"])
    return [
        Check.at_least("chain_vs_broker", round(first / broker_per_s, 3), CHAIN_VS_BROKER_MIN),
        Check.equal("sustained", sum(row["sustained_per_s"] > 0 for row in found), len(CONFIGURATIONS)),
        Check.equal("lost", lost, 0),
        Check.at_least("load_vs_broker", round(flat_out_per_s(rows, LOAD_ALONE) / broker_per_s, 2), LOAD_VS_BROKER_MIN),
    ]
