"""``tidegate bench ledger``: what it costs a gateway to note by identity what it acknowledges.

Two gateways on one broker, equal but for the setting ``ledger``; the same load of QoS 1 readings goes through one after
the other, in another order each time, and only the ratio within a repetition counts. Both run all the while, so what a
gateway costs without any traffic is in both.
"""

import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tidegate.report.checks import Check, Report
from tidegate.report.progress import Progress
from tidegate_bench.gateway.stand import stand
from tidegate_bench.rig import processes
from tidegate_bench.rig.children import Child
from tidegate_bench.rig.servers import ServerProcess
from tidegate_bench.rig.steady_load import IDENTITY

REPETITIONS = 10
DEVICES, CONNECTIONS = 400, 40
RATE_PER_S, SECONDS = 3_000, 6.0
# Long enough that the report of what was noted is in what is measured.
SETTLE_S = 10.5
COST_RATIO_MAX = 1.05


def run(progress: Progress, out: Path | None) -> Report:
    began_s = time.monotonic()
    with stand(out) as here:
        broker = here.nats()
        with (
            here.starter.gateway(broker.state, {"processes": 1, "ledger": True}, identity=IDENTITY) as on,
            here.starter.gateway(broker.state, {"processes": 1, "ledger": False}, identity=IDENTITY) as off,
        ):
            rows = list(_repetitions({"on": on, "off": off}, progress))
    return Report("bench ledger", rows, [check(rows)], round(time.monotonic() - began_s, 1))


def check(rows: list[dict[str, Any]]) -> Check:
    return Check.at_most("cost_ratio", round(statistics.median(ratios(rows)), 4), COST_RATIO_MAX)


def ratios(rows: list[dict[str, Any]]) -> list[float]:
    """Of each repetition: processor time per message with the ledger over that without."""
    cost = {(row["repetition"], row["ledger"]): row["cpu_us_per_message"] for row in rows}
    return [cost[number, "on"] / cost[number, "off"] for number in sorted({row["repetition"] for row in rows})]


def _repetitions(gateways: dict[str, ServerProcess], progress: Progress) -> Iterator[dict[str, Any]]:
    names = list(gateways)
    for number in range(REPETITIONS):
        for name in names if number % 2 else reversed(names):
            progress.step(f"repetition {number + 1} of {REPETITIONS}: ledger {name}")
            yield {"repetition": number, "ledger": name, **_measured(gateways[name], number)}


def _measured(gateway: ServerProcess, number: int) -> dict[str, Any]:
    assert gateway.state is not None
    before_s = processes.cpu_s(gateway.pid)
    load = Child(
        "rig.steady_load",
        "--json",
        "--through-gateway",
        state=gateway.state,
        acks=gateway.state / f"acks-{number}",
        devices=DEVICES,
        connections=CONNECTIONS,
        rate=RATE_PER_S,
        seconds=SECONDS,
        boot=number,
        prefix=f"ledger-{gateway.port}",
    )
    with load:
        summary = load.last_answer()
    time.sleep(SETTLE_S)
    used_s = processes.cpu_s(gateway.pid) - before_s
    return {
        "messages": summary["acked"],
        "rate_kept": summary["rate_kept"],
        "cpu_us_per_message": round(used_s / summary["acked"] * 1e6, 2),
    }
