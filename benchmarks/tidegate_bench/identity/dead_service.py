"""Whether a service that never answers delays those who do not need it: clients with passwords of the installation
connect while others wait for the service, and while nobody does, by turns."""

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from tidegate.bus.issued import Credentials
from tidegate.mqtt.client import encode_connect
from tidegate_bench.identity.commands import issued
from tidegate_bench.identity.grounds import Grounds
from tidegate_bench.identity.held import opened
from tidegate_bench.identity.service import account_service
from tidegate_bench.rig.percentiles import percentile
from tidegate_bench.rig.servers import ServerProcess
from tidegate_bench.rig.spreads import ratios_of

SERVICE, RATIO = "http service", "http service, ratio"
CALM, DEAD = "asked by nobody", "dead"
PAIRS, CONNECTS, WAITING = 6, 500, 48
TIMEOUT_S = 1.0
SETTLE_S = 0.5
PAUSE_S = 0.1
NAME = "apart"

Row = dict[str, Any]


def service_rows(grounds: Grounds, tell: Callable[[str], None]) -> list[Row]:
    passwords = issued(grounds.state, grounds.directory / "apart.csv", [f"{NAME}-{n}" for n in range(CONNECTS)])
    rows: list[Row] = []
    with account_service() as service:
        service.awake.clear()
        identity = {"methods": ["derived", "http"], "http": {"url": service.url, "timeout_s": TIMEOUT_S}}
        with grounds.servers.gateway(grounds.state, identity=identity) as gateway:
            _timed(gateway, passwords)
            for pair in range(PAIRS):
                for state in (CALM, DEAD) if pair % 2 == 0 else (DEAD, CALM):
                    tell(f"Clients of the default method connect, pair {pair + 1} of {PAIRS}: the service is {state}.")
                    with _asking(gateway) if state == DEAD else contextlib.nullcontext(Asked()) as asked:
                        found = _timed(gateway, passwords)
                    counted = {"others_refused": asked.refused, "others_let_in": asked.let_in}
                    rows.append({"part": SERVICE, "pair": pair, "service": state, **found, **counted})
    return [*rows, service_row(rows)]


def service_row(rows: list[Row]) -> Row:
    """The median of the pairs' ratios, and its ends."""
    by_pair = {(row["service"], row["pair"]): row["connect_ms_p99"] for row in rows if row["part"] == SERVICE}
    pairs = sorted({pair for _, pair in by_pair})
    dead, calm = ([by_pair[state, pair] for pair in pairs] for state in (DEAD, CALM))
    return {"part": RATIO, **ratios_of("dead_service_p99_ratio", dead, calm)}


def _timed(gateway: ServerProcess, passwords: Credentials) -> Row:
    took_ms: list[float] = []
    for number in range(CONNECTS):
        name = f"{NAME}-{number}"
        user, password = passwords(name)
        packet, began_s = encode_connect(name, user=user, password=password), time.monotonic()
        connection, code = opened(gateway.address, packet)
        took_ms.append((time.monotonic() - began_s) * 1e3)
        connection.close()
        assert code == 0, f"{name} is not let in: {code}"
    took_ms.sort()
    return {
        "connects": CONNECTS,
        **{f"connect_ms_p{share}": round(percentile(took_ms, share), 2) for share in (50, 99)},
    }


class Asked:
    """What became of those who need the service."""

    def __init__(self) -> None:
        self.refused = self.let_in = 0


@contextlib.contextmanager
def _asking(gateway: ServerProcess) -> Iterator[Asked]:
    """Clients that only the service could know come again and again, each under another name."""
    ends, numbers, asked = threading.Event(), itertools.count(), Asked()

    def ask() -> None:
        while not ends.wait(PAUSE_S):
            name = f"unknown-{next(numbers)}"
            connection, code = opened(gateway.address, encode_connect(name, user=name, password=name))
            connection.close()
            if code == 0:
                asked.let_in += 1
            else:
                asked.refused += 1

    threads = [threading.Thread(target=ask, daemon=True) for _ in range(WAITING)]
    for thread in threads:
        thread.start()
    time.sleep(SETTLE_S)
    try:
        yield asked
    finally:
        ends.set()
        for thread in threads:
            thread.join()
