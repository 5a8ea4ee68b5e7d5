"""Connecting in this checkout against connecting in another: ``python -m tidegate_bench.storm.against OTHER/src``.

For whoever changes how a gateway connects its clients: both gateways run before the same broker, in one run and by
turns. Compiled modules count as they lie there, so compile both or neither.
"""

import argparse
import contextlib
import tempfile
import time
from pathlib import Path

import tidegate
from tidegate.brokers.nats.embedded import EmbeddedBrokers
from tidegate.brokers.settings import BrokerSettings
from tidegate.report.checks import Report
from tidegate.report.printing import print_report
from tidegate.report.progress import Progress
from tidegate_bench.rig.connecting import PAIRS, ConnectTarget, connect_cost_ratio, connect_costs
from tidegate_bench.rig.processes import allow_open_files
from tidegate_bench.rig.servers import starter


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tidegate_bench.storm.against")
    parser.add_argument("sources", type=Path, help="the other checkout's src")
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if not (options.sources / "tidegate").is_dir():
        parser.error(f"{options.sources} holds no tidegate: name the src directory of a checkout.")
    allow_open_files()
    with Progress("connecting") as progress:
        report = _compared(progress, options.sources.absolute(), options.pairs)
    print_report(report, as_json=options.json)


def _compared(progress: Progress, other: Path, pairs: int) -> Report:
    began_s = time.monotonic()
    with contextlib.ExitStack() as opened:
        directory = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="tidegate-bench-")))
        state = directory / "brokers"
        opened.enter_context(EmbeddedBrokers(state, BrokerSettings(nodes=1)))
        servers = opened.enter_context(starter(directory))
        targets = []
        for name, sources in (("this", Path(tidegate.__file__).parents[1]), ("other", other)):
            gateway = opened.enter_context(servers.gateway(state, sources=sources))
            own_state = gateway.state or state
            targets.append(ConnectTarget(name=name, address=gateway.address, pids=(gateway.pid,), state=own_state))
        rows = list(connect_costs(targets[0], targets[1], pairs=pairs, tell=progress.step))
    rows.append({"part": "ratio", **connect_cost_ratio(rows, "this", "other")})
    return Report("connecting", rows, [], round(time.monotonic() - began_s, 1))


if __name__ == "__main__":
    main()
