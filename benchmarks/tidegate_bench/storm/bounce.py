"""One bounce of a broker under its clients: killed, started again, and everything timed until all of them are back."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import psutil

from tidegate.brokers.nats.embedded import EmbeddedBrokers
from tidegate.local.waiting import answers, wait_until
from tidegate.model.errors import TidegateError
from tidegate_bench.rig import processes
from tidegate_bench.rig.children import Child
from tidegate_bench.rig.processes import Pid, ProcessorTime
from tidegate_bench.rig.servers import ServerProcess

CLIENTS = 2_000
DOWN_S = 2.0
SETTLE_S = 1.0
ALL_S_MAX = 120.0

Row = dict[str, Any]


class Crowd(msgspec.Struct, frozen=True, kw_only=True):
    """The clients of one bounce: where they connect, and with which certificate if they use TLS."""

    name: str
    state: Path
    address: tuple[str, int]
    authority: Path | None = None

    def start(self) -> Child:
        host, port = self.address
        believed = () if self.authority is None else ("--authority", str(self.authority))
        clients = Child(
            "storm.clients", *believed, state=self.state, host=host, port=port, clients=CLIENTS, name=self.name
        )
        clients.answer()
        return clients


def connected(crowd: Crowd) -> Row:
    """All at once, to something that runs: how long that takes."""
    with crowd.start() as clients:
        clients.tell("go")
        began_s = clients.answer()["began_s"]
        last = _all_connected(clients, began_s)
    time.sleep(SETTLE_S)
    return {"clients": CLIENTS, "seconds": round(last["at_s"] - began_s, 4), **_counts(last)}


def bounced(brokers: EmbeddedBrokers, crowd: Crowd, gateway: ServerProcess | None) -> tuple[Row, list[Row]]:
    """What came of it, and how many were connected when. All times are from the moment at which the broker accepted
    again."""
    memory = _watched(gateway)
    with crowd.start() as clients:
        clients.tell("go")
        calm = _all_connected(clients, clients.answer()["began_s"])
        time.sleep(SETTLE_S)
        brokers.kill_broker(0)
        time.sleep(DOWN_S)
        brokers.start_broker(0, wait=False)
        back_s = _await_accepting(broker_address(brokers))
        parts: dict[str, Pid] = {"clients": clients.pid, "broker": brokers.pids()[0]}
        if gateway is not None:
            parts["gateway"] = gateway.pid
        before, idle_before_s = _spent(parts), psutil.cpu_times().idle
        looks = [_since(look, calm, back_s) for look in _until_all(clients, back_s)]
        spent, idle_s = _spent(parts), psutil.cpu_times().idle - idle_before_s
        memory |= _peak(gateway)
        accepted_s = [moment_s - back_s for moment_s in _accepted_s(clients) if moment_s >= back_s]
    whole = {
        "clients": CLIENTS,
        "all_back": looks[-1]["connected"] == CLIENTS,
        "all_back_s": looks[-1]["at_s"],
        **course(accepted_s),
        **{
            f"{part}_{kind}": round(getattr(spent[part], kind) - getattr(before[part], kind), 3)
            for part in parts
            for kind in ProcessorTime._fields
        },
        "idle_s": round(idle_s, 3),
        **memory,
    }
    return {**whole, **_counts(looks[-1])}, looks


def course(accepted_s: Sequence[float]) -> Row:
    """When the first CONNACK came, when half of them and nine of ten, and how many a second between the first tenth and
    the last: beginning and end say more about waiting than about speed."""
    if len(accepted_s) < 10:
        return {}
    moments = sorted(accepted_s)
    tenth, half, most = (moments[int(len(moments) * share)] for share in (0.1, 0.5, 0.9))
    rate_per_s = 0.8 * len(moments) / max(1e-3, most - tenth)
    return {
        "first_s": round(moments[0], 4),
        "half_s": round(half, 4),
        "most_s": round(most, 4),
        "connacks_per_s": round(rate_per_s),
    }


def broker_address(brokers: EmbeddedBrokers) -> tuple[str, int]:
    assert brokers.installation is not None
    return brokers.installation.mqtt_addresses[0]


def _watched(gateway: ServerProcess | None) -> Row:
    """From here on its peak is noted; what it holds before any client has connected."""
    if gateway is None:
        return {}
    time.sleep(SETTLE_S)
    processes.forget_peak(gateway.pid)
    return {"rss_kib_before": processes.rss_bytes(gateway.pid) // 1024}


def _peak(gateway: ServerProcess | None) -> Row:
    return {"rss_kib_peak": processes.peak_rss_bytes(gateway.pid) // 1024} if gateway is not None else {}


def _spent(parts: dict[str, Pid]) -> dict[str, ProcessorTime]:
    return {name: processes.processor_time(pid) for name, pid in parts.items()}


def _accepted_s(clients: Child) -> list[float]:
    """At which moments they were accepted, of all attempts."""
    clients.tell("enough")
    while "accepted_s" not in (answer := clients.answer()):
        pass
    moments: list[float] = answer["accepted_s"]
    return moments


def _since(look: Row, calm: Row, back_s: float) -> Row:
    """Counted from the bounce, timed from the moment at which the broker accepted again."""
    counts = {name: value - calm[name] for name, value in _counts(look).items()}
    return {"at_s": round(look["at_s"] - back_s, 4), "connected": look["connected"], **counts}


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


def _counts(look: Row) -> dict[str, int]:
    return {name: look[name] for name in ("attempts", "refused", "unanswered", "lost")}
