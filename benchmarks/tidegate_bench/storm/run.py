"""``tidegate bench storm``: two thousand clients that connect again without any backoff, and a broker that is bounced.

First the clients connect to the broker directly, all at once: that is how many it accepts per second. Then they connect
through a gateway, the broker is killed and started again, and the clock runs from the moment at which it accepts TCP
connections again until every client has its CONNACK. The gateway's memory is the most its processes held until then,
over what they held before any client had connected.
"""

import contextlib
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tidegate.brokers.nats.embedded import EmbeddedBrokers
from tidegate.brokers.settings import BrokerSettings
from tidegate.local.waiting import answers, wait_until
from tidegate.model.errors import TidegateError
from tidegate.report.checks import Check, Report
from tidegate.report.progress import Progress
from tidegate_bench.rig import processes
from tidegate_bench.rig.children import Child
from tidegate_bench.rig.processes import allow_open_files
from tidegate_bench.rig.servers import ServerProcess, starter

CLIENTS = 2_000
REPETITIONS = 3
DOWN_S = 2.0
SETTLE_S = 1.0
ALL_S_MAX = 120.0
SERIES_STEP_S = 0.5
FACTOR_MAX = 2.0
KIB_PER_CLIENT_MAX = 64.0
DIRECT, ALONE, STORM, SERIES = "direct", "bounce, no gateway", "bounce", "series"

Row = dict[str, Any]


def run(progress: Progress, out: Path | None) -> Report:
    began_s = time.monotonic()
    allow_open_files()
    rows: list[Row] = []
    with contextlib.ExitStack() as opened:
        directory = out or Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="tidegate-bench-")))
        state = directory.absolute() / "brokers"
        brokers = opened.enter_context(EmbeddedBrokers(state, BrokerSettings(nodes=1)))
        servers = opened.enter_context(starter(directory.absolute()))
        for repetition in range(REPETITIONS):
            turn = f"repetition {repetition + 1} of {REPETITIONS}"
            progress.step(f"{turn}: {CLIENTS:,} clients connect to the broker")
            found = [_direct(brokers, state, f"direct-{repetition}")]
            progress.step(f"{turn}: the broker is bounced, without a gateway")
            found += _bounced(brokers, state, None, f"alone-{repetition}")
            progress.step(f"{turn}: the broker is bounced, behind a gateway")
            with servers.gateway(state) as gateway:
                found += _bounced(brokers, state, gateway, f"storm-{repetition}")
            rows += [{"repetition": repetition, **row} for row in found]
    return Report("bench storm", rows, checks(rows), round(time.monotonic() - began_s, 1))


def checks(rows: list[Row]) -> list[Check]:
    """Medians over the repetitions; one that did not end counts with the time that was waited."""
    accepted_per_s = statistics.median(row["clients"] / row["seconds"] for row in rows if row["part"] == DIRECT)
    storms = [row for row in rows if row["part"] == STORM]
    factors = [row["all_back_s"] / (row["clients"] / accepted_per_s) for row in storms]
    grown_kib = [(row["rss_kib_peak"] - row["rss_kib_before"]) / row["clients"] for row in storms]
    return [
        Check.at_most("all_back_factor", round(statistics.median(factors), 3), FACTOR_MAX),
        Check.at_most("memory_kib_per_client", round(statistics.median(grown_kib), 2), KIB_PER_CLIENT_MAX),
    ]


def _direct(brokers: EmbeddedBrokers, state: Path, name: str) -> Row:
    with _clients(_address(brokers), state, name) as clients:
        clients.tell("go")
        began_s = clients.answer()["began_s"]
        last = _all_connected(clients, began_s)
    time.sleep(SETTLE_S)
    return {"part": DIRECT, "clients": CLIENTS, "seconds": round(last["at_s"] - began_s, 4), **_counts(last)}


def _bounced(brokers: EmbeddedBrokers, state: Path, gateway: ServerProcess | None, name: str) -> list[Row]:
    """Without a gateway it shows what the broker alone makes of such clients; no check depends on that."""
    host, port = _address(brokers)
    before = _watched(gateway)
    with _clients((host, gateway.port if gateway is not None else port), state, name) as clients:
        clients.tell("go")
        calm = _all_connected(clients, clients.answer()["began_s"])
        time.sleep(SETTLE_S)
        brokers.kill_broker(0)
        time.sleep(DOWN_S)
        brokers.start_broker(0, wait=False)
        accepted_s = _await_accepting((host, port))
        looks = list(_until_all(clients, accepted_s))
        memory = before | _peak(gateway)
    found = [_since(look, calm, accepted_s) for look in looks]
    whole = {
        "part": STORM if gateway is not None else ALONE,
        "clients": CLIENTS,
        "all_back": found[-1]["connected"] == CLIENTS,
        "all_back_s": found[-1]["at_s"],
    }
    series = thinned(found, SERIES_STEP_S) if gateway is not None else []
    return [{**whole, **memory, **_counts(found[-1])}, *({"part": SERIES, **look} for look in series)]


def _watched(gateway: ServerProcess | None) -> Row:
    """From here on its peak is noted; what it holds before any client has connected."""
    if gateway is None:
        return {}
    time.sleep(SETTLE_S)
    processes.forget_peak(gateway.pid)
    return {"rss_kib_before": processes.rss_bytes(gateway.pid) // 1024}


def _peak(gateway: ServerProcess | None) -> Row:
    return {"rss_kib_peak": processes.peak_rss_bytes(gateway.pid) // 1024} if gateway is not None else {}


def _since(look: Row, calm: Row, accepted_s: float) -> Row:
    """Counted from the bounce, timed from the moment at which the broker accepted again."""
    counts = {name: value - calm[name] for name, value in _counts(look).items()}
    return {"at_s": round(look["at_s"] - accepted_s, 4), "connected": look["connected"], **counts}


def _address(brokers: EmbeddedBrokers) -> tuple[str, int]:
    assert brokers.installation is not None
    return brokers.installation.mqtt_addresses[0]


def _clients(address: tuple[str, int], state: Path, name: str) -> Child:
    host, port = address
    clients = Child("storm.clients", state=state, host=host, port=port, clients=CLIENTS, name=name)
    clients.answer()
    return clients


def _all_connected(clients: Child, since_s: float) -> Row:
    *_, last = _until_all(clients, since_s)
    if last["connected"] < CLIENTS:
        raise TidegateError(f"Only {last['connected']} of {CLIENTS} clients could connect within {ALL_S_MAX:.0f} s.")
    return last


def _until_all(clients: Child, since_s: float) -> Iterator[Row]:
    """What the clients say, up to the first moment after ``since_s`` at which all are connected, or until too late."""
    while True:
        look = clients.answer()
        yield look
        if look["at_s"] >= since_s and (look["connected"] == CLIENTS or look["at_s"] - since_s > ALL_S_MAX):
            return


def _await_accepting(address: tuple[str, int]) -> float:
    """The moment at which the broker accepts again."""
    if not wait_until(lambda: answers(address, timeout_s=1.0), ALL_S_MAX, look_s=0.002):
        raise TidegateError(f"The broker at {address[0]}:{address[1]} did not come back within {ALL_S_MAX:.0f} s.")
    return time.monotonic()


def thinned(looks: list[Row], step_s: float) -> Iterator[Row]:
    """At most one per step, and always the last."""
    next_s = -float("inf")
    for look in looks[:-1]:
        if look["at_s"] >= next_s:
            next_s = look["at_s"] + step_s
            yield look
    yield looks[-1]


def _counts(look: Row) -> dict[str, int]:
    return {name: look[name] for name in ("attempts", "refused", "unanswered", "lost")}
