"""What it costs a gateway to know who connects: by the default method, to leaving everything to the broker."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tidegate.bus.issued import Issued, save_issued
from tidegate.report.checks import Check
from tidegate_bench.identity.commands import issued
from tidegate_bench.identity.grounds import Grounds
from tidegate_bench.rig.connecting import NAME, ConnectTarget, connect_cost_ratio, connect_cost_us, connect_costs
from tidegate_bench.rig.spreads import SPREAD, spread

DERIVED, PASSED_ON = "derived", "passed on"
COST = "connect cost"
CONNECTS, PAIRS = 2_000, 15
RATIO, RATIO_MAX = "connect_cost_ratio", 1.15
# Nothing is decided here: clients come with the user and the password that the broker knows.
_PASS_ON = {"methods": ["broker"], "broker": {"decides_topics": True}}

Row = dict[str, Any]


def cost_rows(grounds: Grounds, tell: Callable[[str], None]) -> list[Row]:
    names = [f"{NAME}-{number}" for number in range(CONNECTS)]
    own, passed_on = grounds.directory / "connecting.csv", grounds.directory / "connecting-passed-on.csv"
    issued(grounds.state, own, names)
    _save_as_gateway(grounds, passed_on, names)
    with (
        grounds.servers.gateway(grounds.state) as judging,
        grounds.servers.gateway(grounds.state, identity=_PASS_ON) as passing,
    ):
        targets = [
            ConnectTarget(name=name, address=one.address, pids=(one.pid,), state=grounds.state, passwords=path)
            for name, one, path in ((DERIVED, judging, own), (PASSED_ON, passing, passed_on))
        ]
        rows = list(connect_costs(*targets, connects=CONNECTS, pairs=PAIRS, tell=tell))
    return [*rows, cost_row(rows), {"part": SPREAD, **spread(RATIO, _ratios(rows))}]


def cost_row(rows: list[Row]) -> Row:
    """Both medians, and the ratio with its ends."""
    costs = {f"{name.replace(' ', '_')}_us": connect_cost_us(rows, name) for name in (DERIVED, PASSED_ON)}
    return {"part": COST, **costs, **connect_cost_ratio(rows, DERIVED, PASSED_ON, RATIO)}


def _ratios(rows: list[Row]) -> list[float]:
    """Of the pairs."""
    costs = {(row["through"], row["pair"]): row["cpu_s_per_connect"] for row in rows}
    return [costs[DERIVED, pair] / costs[PASSED_ON, pair] for pair in sorted({pair for _, pair in costs})]


def cost_checks(rows: list[Row]) -> list[Check]:
    (found,) = (row for row in rows if row["part"] == COST)
    return [Check.at_most(RATIO, found[RATIO], RATIO_MAX)]


def _save_as_gateway(grounds: Grounds, path: Path, names: list[str]) -> None:
    user, password = grounds.installation.mqtt_user, grounds.installation.mqtt_password
    save_issued(path, (Issued(name=name, user=user, password=password, generation=1) for name in names))
