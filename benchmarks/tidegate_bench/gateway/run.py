"""``tidegate bench gateway``: what the gateway costs beside HAProxy, a bare forwarder and no proxy at all, in one run.

HAProxy runs in TCP mode on one thread, checks that it is MQTT that passes and keeps a client at its broker: what a
deployment would use. The forwarder hands bytes on without a look at them, in Python on uvloop: what is left of a
gateway that does nothing. It and the gateway are one process each. Every repetition measures all ways one after
another, beginning with another one each time, and only ratios within a repetition count. Memory is that of fresh
processes.
"""

import importlib.util
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tidegate.model.errors import TidegateError
from tidegate.report.checks import Report
from tidegate.report.progress import Progress
from tidegate_bench.gateway import checks as gateway_checks
from tidegate_bench.gateway import pooling
from tidegate_bench.gateway import stand as gateway_stand
from tidegate_bench.gateway.checks import BATCHES, DIRECT, IDLE, MACHINE, SENDS, TLS
from tidegate_bench.gateway.stand import SEED, Stand, Way
from tidegate_bench.rig import processes
from tidegate_bench.rig.children import Child
from tidegate_bench.rig.processes import allow_open_files

REPETITIONS = 10
CONNECTIONS = 500
# The first that the load keeps up with on every way; the load, the broker and the proxy share the machine.
RATES_PER_S = (20_000.0, 15_000.0, 10_000.0, 5_000.0)
TLS_RATES_PER_S = (8_000.0, 4_000.0, 2_000.0)
SECONDS, TRIAL_S = 6.0, 2.0
BATCH_CONNECTIONS, BATCH_SECONDS = 8, 3.0
IDLE_CONNECTIONS = (1_000, 4_000)
SETTLE_S = 1.0

ONE_PROCESS: dict[str, Any] = {"processes": 1}
# Limits that are looked at for every message and never bind.
LIMITED: dict[str, Any] = {
    "processes": 1,
    "client_credits_max": 1e9,
    "client_credits_per_s": 1e9,
    "limits": [{"topics": ["#"], "rate_per_s": 1e9, "burst": 1e9}],
}


def run(progress: Progress, out: Path | None, *, rounds: int = REPETITIONS) -> Report:
    began_s = time.monotonic()
    allow_open_files()
    with gateway_stand.stand(out) as stand:
        rows = [machine(), *_sends(stand, rounds, progress), *_over_tls(stand, rounds, progress)]
        rows += [*_batches(stand, rounds, progress), *_idle(stand, progress)]
    rows = pooling.pooled(rows, SEED)
    rows += gateway_checks.spreads(rows)
    return Report("bench gateway", rows, gateway_checks.checks(rows), round(time.monotonic() - began_s, 1))


def machine() -> dict[str, Any]:
    """On what it was measured."""
    models = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    scanner = importlib.util.find_spec("tidegate.mqtt.frames")
    compiled = scanner is not None and not str(scanner.origin).endswith(".py")
    return {
        "part": MACHINE,
        "processors": len(os.sched_getaffinity(0)),
        "model": models[0].partition(":")[2].strip() if models else "unknown",
        "frame_scanner": "compiled" if compiled else "not compiled",
        "seed": SEED,
    }


def turns(ways: list[Way], repetitions: int) -> Iterator[tuple[int, Way]]:
    """Another way goes first each time, so that slow moments of the machine meet all of them alike."""
    for repetition in range(repetitions):
        first = repetition % len(ways)
        yield from ((repetition, way) for way in (*ways[first:], *ways[:first]))


def _sends(stand: Stand, rounds: int, progress: Progress) -> Iterator[dict[str, Any]]:
    with stand.mosquitto() as broker, stand.ways(broker, ONE_PROCESS) as ways:
        yield from _paced(SENDS, ways, rounds, progress, rates_per_s=RATES_PER_S)


def _over_tls(stand: Stand, rounds: int, progress: Progress) -> Iterator[dict[str, Any]]:
    with stand.mosquitto() as broker, stand.ways(broker, ONE_PROCESS, tls=True) as ways:
        proxies = [way for way in ways if way.through != DIRECT]
        certificate = stand.certificate.certificate
        rows = list(_paced(TLS, proxies, rounds, progress, rates_per_s=TLS_RATES_PER_S, certificate=certificate))
    ciphers = {row["through"]: row["cipher"] for row in rows}
    if len(set(ciphers.values())) > 1:
        raise TidegateError(f"The proxies encrypt differently and cannot be compared: {ciphers}.")
    yield from rows


def _paced(
    part: str,
    ways: list[Way],
    rounds: int,
    progress: Progress,
    *,
    rates_per_s: tuple[float, ...],
    certificate: Path | None = None,
) -> Iterator[dict[str, Any]]:
    progress.step(f"{part}: looking for a rate that every way keeps up with")
    rate_per_s = _rate_kept(ways, rates_per_s, certificate)
    for repetition, way in turns(ways, rounds):
        progress.step(f"{part}, {rate_per_s:,.0f} msg/s, repetition {repetition + 1} of {rounds}: {way.through}")
        row = gateway_stand.paced(
            way, rate_per_s=rate_per_s, seconds=SECONDS, connections=CONNECTIONS, certificate=certificate
        )
        yield {"part": part, "repetition": repetition, **row}


def _rate_kept(ways: list[Way], rates_per_s: tuple[float, ...], certificate: Path | None) -> float:
    """The highest that all of them keep, and the lowest where none is. It warms all processes up as well."""
    for rate_per_s in rates_per_s[:-1]:
        trials = (
            gateway_stand.paced(
                way, rate_per_s=rate_per_s, seconds=TRIAL_S, connections=CONNECTIONS, certificate=certificate
            )
            for way in ways
        )
        if all(trial["kept_pace"] for trial in trials):
            return rate_per_s
    return rates_per_s[-1]


def _batches(stand: Stand, rounds: int, progress: Progress) -> Iterator[dict[str, Any]]:
    with stand.ways(stand.nats(), LIMITED) as ways:
        for way in ways:
            progress.step(f"{BATCHES}: warming up, {way.through}")
            gateway_stand.batched(way, seconds=TRIAL_S, connections=BATCH_CONNECTIONS)
        for repetition, way in turns(ways, rounds):
            progress.step(f"{BATCHES}, repetition {repetition + 1} of {rounds}: {way.through}")
            row = gateway_stand.batched(way, seconds=BATCH_SECONDS, connections=BATCH_CONNECTIONS)
            yield {"part": BATCHES, "repetition": repetition, **row}


def _idle(stand: Stand, progress: Progress) -> Iterator[dict[str, Any]]:
    """Resident memory of fresh processes, before and after so many clients connected and said nothing."""
    for connections in IDLE_CONNECTIONS:
        for tls in (False, True):
            with stand.mosquitto() as broker, stand.ways(broker, ONE_PROCESS, tls=True) as ways:
                for way in ways:
                    if way.proxy is not None:
                        progress.step(f"{connections:,} idle connections{' with TLS' * tls}: {way.through}")
                        yield {"part": IDLE, "tls": tls, **_memory(stand, way, connections, tls=tls)}


def _memory(stand: Stand, way: Way, connections: int, *, tls: bool) -> dict[str, Any]:
    assert way.proxy is not None
    options = way.options(stand.certificate.certificate if tls else None)
    with Child("gateway.load", "idle", connections=1, **options) as first:
        first.answer()
    time.sleep(SETTLE_S)
    before = processes.rss_bytes(way.proxy.pid)
    with Child("gateway.load", "idle", connections=connections, **options) as load:
        load.answer()
        time.sleep(SETTLE_S)
        after = processes.rss_bytes(way.proxy.pid)
    return {
        "through": way.through,
        "connections": connections,
        "rss_kib_before": before // 1024,
        "rss_kib_after": after // 1024,
        "kib_per_connection": round((after - before) / 1024 / connections, 2),
    }
