"""What it costs a gateway to connect a client: processor time of its processes per CONNECT, two gateways by turns.

``connect_costs`` measures two gateways that run, each known by its address and its processes; only the ratio within a
pair counts. Each pair connects the same clients as the one before, as they come back after an outage, and waits until
the gateway has noticed that they have gone. ``python -m tidegate_bench.rig.connecting`` is the clients' process.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tidegate.bus.installation import load_installation
from tidegate.bus.issued import read_issued
from tidegate.local.waiting import wait_until
from tidegate.model.errors import TidegateError
from tidegate_bench.rig import processes
from tidegate_bench.rig.children import Child
from tidegate_bench.rig.clients import open_clients, tls_context
from tidegate_bench.rig.credentials import credentials
from tidegate_bench.rig.processes import ProcessorTime, allow_open_files
from tidegate_bench.rig.spreads import ratios_of

CONNECTS, PAIRS = 2_000, 10
GONE_S_MAX, GONE_LOOK_S = 30.0, 0.05
# Files that a gateway may open meanwhile for itself.
FILES_SLACK = 8
PART = "connecting"
# What clients are called, with a number behind it.
NAME = "connecting"

Row = dict[str, Any]


class ConnectTarget(msgspec.Struct, frozen=True, kw_only=True):
    """A gateway, or what stands in its place. ``pids``: its processes, or the one that started all of them; ``state``
    says as whom clients connect, unless there is a file of passwords (``tidegate device add --out``), and ``authority``
    is the certificate to believe if it speaks TLS."""

    name: str
    address: tuple[str, int]
    pids: Sequence[int | None]
    state: Path
    authority: Path | None = None
    passwords: Path | None = None

    def spent(self) -> ProcessorTime:
        """By all of its processes so far, each counted once."""
        return processes.processor_time_of(self.pids)

    def open_files(self) -> int:
        return processes.open_files_of(self.pids)


def connect_costs(
    first: ConnectTarget,
    second: ConnectTarget,
    *,
    connects: int = CONNECTS,
    pairs: int = PAIRS,
    tell: Callable[[str], None] = lambda _: None,
) -> Iterator[Row]:
    """A row per pair and gateway. Both are warmed up before; which of them goes first alternates."""
    for target in (first, second):
        tell(f"{connects:,} clients connect: warming up, {target.name}")
        _connected(target, connects)
    for pair in range(pairs):
        for target in (second, first) if pair % 2 else (first, second):
            tell(f"{connects:,} clients connect, pair {pair + 1} of {pairs}: {target.name}")
            yield {"part": PART, "pair": pair, "through": target.name, **_connected(target, connects)}


def connect_cost_ratio(rows: Sequence[Row], of: str, to: str, name: str = "connect_cost_ratio") -> dict[str, float]:
    """What connecting through one costs, divided by the same of the other: the median of the pairs, and its ends."""
    costs = {(row["through"], row["pair"]): row["cpu_s_per_connect"] for row in rows if row["part"] == PART}
    pairs = sorted({pair for _, pair in costs})
    return ratios_of(name, [costs[of, pair] for pair in pairs], [costs[to, pair] for pair in pairs])


def connect_cost_us(rows: Sequence[Row], through: str) -> float:
    """The median of one gateway's own."""
    costs: list[float] = [row["cpu_s_per_connect"] for row in rows if row["part"] == PART and row["through"] == through]
    return round(statistics.median(costs) * 1e6, 1)


def _connected(target: ConnectTarget, connects: int) -> Row:
    """All of them once; from the first connection until the last CONNACK. Going is not part of it, but awaited."""
    host, port = target.address
    files = target.open_files()
    given = {"authority": target.authority, "passwords": target.passwords}
    options: dict[str, Any] = {"state": target.state, "host": host, "port": port, "connects": connects}
    options |= {name: path for name, path in given.items() if path is not None}
    with Child("rig.connecting", **options) as clients:
        clients.answer()
        before = target.spent()
        clients.tell("go")
        seconds = clients.answer()["seconds"]
        after = target.spent()
    if not wait_until(lambda: target.open_files() <= files + FILES_SLACK, GONE_S_MAX, GONE_LOOK_S):
        raise TidegateError(f"{target.name} still holds connections {GONE_S_MAX:.0f} s after its clients have gone.")
    user_s, system_s = after.user_s - before.user_s, after.system_s - before.system_s
    return {
        "connects": connects,
        "seconds": round(seconds, 3),
        "user_s": round(user_s, 3),
        "system_s": round(system_s, 3),
        "cpu_s_per_connect": round((user_s + system_s) / connects, 8),
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tidegate_bench.rig.connecting")
    parser.add_argument("--state", type=Path, required=True, help="directory that says as whom to connect")
    parser.add_argument("--host", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--connects", type=int, required=True)
    parser.add_argument("--passwords", type=Path, help="file of names and passwords, in place of what the state says")
    parser.add_argument("--authority", help="certificate (PEM) to believe; without it there is no TLS")
    options = parser.parse_args()
    allow_open_files()
    as_whom = credentials(load_installation(options.state))
    if options.passwords is not None:
        as_whom = read_issued(options.passwords)
    tls = tls_context(options.authority) if options.authority else None
    _say({"ready": options.connects})
    if sys.stdin.readline():
        began_s = time.monotonic()
        opened = open_clients((options.host, options.port), options.connects, name=NAME, credentials=as_whom, tls=tls)
        _say({"connected": len(opened), "seconds": time.monotonic() - began_s})
        sys.stdin.readline()


def _say(what: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
