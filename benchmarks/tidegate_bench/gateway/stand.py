"""Where the gateway benchmark runs: brokers and proxies side by side, one load at a time through one of them.

Two brokers, because neither must be what is measured. Mosquitto takes one message per send with the least processor
time, so the most is left for the proxies; it reads packet by packet, though, and stops at some 240,000 messages a
second. For batches there is the embedded NATS server: on topics that no slice keeps it takes a million and more.

A proxy that is timed has a processor of its own, and the load, the probes and the broker share another: otherwise the
slowest percent would be the scheduler's. Where the throughput is measured, all may run everywhere.
"""

import contextlib
import json
import os
import tempfile
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from tidegate.brokers.nats.embedded import EmbeddedBrokers
from tidegate.brokers.settings import BrokerSettings
from tidegate.bus.installation import save_installation
from tidegate.machine.ports import HOST
from tidegate.model.installation import Installation
from tidegate_bench.rig import processes
from tidegate_bench.rig.certificates import Certificate
from tidegate_bench.rig.children import Child
from tidegate_bench.rig.clients import IDENTITY
from tidegate_bench.rig.percentiles import percentile
from tidegate_bench.rig.servers import ServerProcess, Starter, starter

SEED = 5
# Of the probes: enough that thirty of them are slower than the 99th percentile.
PROBES_PER_S = 500.0
PROBE_CONNECTIONS = 20
PACE_SLACK = 1.02
# How long each probe took: pooled over all repetitions, and too many to be printed.
SAMPLES = "took_ms"


class StandBroker(msgspec.Struct, frozen=True, kw_only=True):
    """It takes what passes. ``state`` is an installation whose only broker it is, ``monitor`` its own counters."""

    pid: int | None
    address: tuple[str, int]
    state: Path
    monitor: str | None = None

    def received(self) -> int:
        """Messages that all clients together have published so far, by the broker's own count."""
        assert self.monitor is not None
        with urllib.request.urlopen(f"{self.monitor}/varz", timeout=10) as page:  # noqa: S310 - an own address
            return int(json.load(page)["in_msgs"])


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """How a load reaches a broker: through a proxy, or directly."""

    through: str
    broker: StandBroker
    proxy: ServerProcess | None = None

    def options(self, certificate: Path | None) -> dict[str, Any]:
        state = self.broker.state
        if self.proxy is None:
            port = self.broker.address[1]
        else:
            port = self.proxy.port if certificate is None else self.proxy.tls_port
            state = self.proxy.state or state
        believed = {} if certificate is None else {"authority": certificate}
        return {"state": state, "host": HOST, "port": port, **believed}


class Stand:
    """One directory with everything; use it as a context."""

    def __init__(self, directory: Path, brokers: EmbeddedBrokers, starter: Starter) -> None:
        self.directory = directory
        self.starter = starter
        self.certificate = Certificate.made(directory)
        self._brokers = brokers

    def nats(self) -> StandBroker:
        installation = self._installation
        broker = self._broker("nats", self._brokers.pids()[0], installation.mqtt_addresses[0])
        return msgspec.structs.replace(broker, monitor=installation.monitor_urls[0])

    @contextlib.contextmanager
    def mosquitto(self) -> Iterator[StandBroker]:
        with self.starter.mosquitto() as server:
            yield self._broker("mosquitto", server.pid, server.address)

    @contextlib.contextmanager
    def ways(self, broker: StandBroker, settings: Mapping[str, Any], *, tls: bool = False) -> Iterator[list[Way]]:
        """Direct, and through each proxy; all of them run all the while, and only one has work. A forwarder that knows
        nothing but bytes knows no TLS."""
        with contextlib.ExitStack() as opened:
            proxies = [opened.enter_context(self.starter.haproxy(broker.address, self.certificate))]
            if not tls:
                proxies.append(opened.enter_context(self.starter.forwarder(broker.address)))
            certificate = self.certificate if tls else None
            gateway = self.starter.gateway(broker.state, settings, certificate, identity=IDENTITY)
            proxies.append(opened.enter_context(gateway))
            yield [
                Way(through="direct", broker=broker),
                *(Way(through=proxy.name, broker=broker, proxy=proxy) for proxy in proxies),
            ]

    @property
    def _installation(self) -> Installation:
        installation = self._brokers.installation
        assert installation is not None
        return installation

    def _broker(self, name: str, pid: int | None, address: tuple[str, int]) -> StandBroker:
        state = self.directory / name
        state.mkdir(exist_ok=True)
        save_installation(msgspec.structs.replace(self._installation, mqtt_addresses=(address,)), state)
        return StandBroker(pid=pid, address=address, state=state)


@contextlib.contextmanager
def stand(out: Path | None) -> Iterator[Stand]:
    with contextlib.ExitStack() as opened:
        directory = out or Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="tidegate-bench-")))
        brokers = opened.enter_context(EmbeddedBrokers(directory / "brokers", BrokerSettings(nodes=1)))
        yield Stand(directory.absolute(), brokers, opened.enter_context(starter(directory.absolute())))


def paced(way: Way, *, rate_per_s: float, seconds: float, connections: int, certificate: Path | None) -> dict[str, Any]:
    """One publish per send, and what each cost the proxy; beside it the probes, and how long their answers took."""
    options = {**way.options(certificate), "seconds": seconds}
    with (
        Child("gateway.load", "paced", connections=connections, rate=rate_per_s, **options) as load,
        Child("gateway.load", "probe", connections=PROBE_CONNECTIONS, rate=PROBES_PER_S, seed=SEED, **options) as probe,
    ):
        cipher = load.answer()["cipher"]
        probe.answer()
        _apart(way, load, probe)
        before = _spent(way, load)
        load.tell("go")
        probe.tell("go")
        sent, probed = load.answer(), probe.answer()
        used = _since(before, _spent(way, load))
    messages = sent["messages"] + probed["messages"]
    took_ms = sorted(probed["took_ms"])
    return {
        "through": way.through,
        "rate_per_s": rate_per_s,
        "connections": connections,
        "messages": messages,
        "kept_pace": bool(sent["sending_s"] <= PACE_SLACK * seconds and not probed["unanswered"]),
        "late_ms_max": round(sent["late_ms_max"], 2),
        **used,
        **_per_message(used, messages),
        **{f"ack_ms_p{share}": percentile(took_ms, share) for share in (50, 90, 99)},
        **({"cipher": cipher} if cipher else {}),
        SAMPLES: took_ms,
    }


def batched(way: Way, *, seconds: float, connections: int) -> dict[str, Any]:
    """Many publishes per send, as fast as they go; the clock stops when the broker has all of them."""
    with Child("gateway.load", "batched", connections=connections, seconds=seconds, **way.options(None)) as load:
        load.answer()
        before, received = _spent(way, load), way.broker.received()
        load.tell("go")
        sent = load.answer()
        arrived = way.broker.received() - received
        used = _since(before, _spent(way, load))
    return {
        "through": way.through,
        "connections": connections,
        "messages": sent["messages"],
        "arrived": arrived,
        "seconds": round(sent["seconds"], 3),
        "messages_per_s": round(arrived / sent["seconds"]),
        **used,
        **_per_message(used, arrived),
    }


def _spent(way: Way, load: Child) -> dict[str, float]:
    """Processor time so far: the proxy's own, the kernel's for the proxy, and what the others took."""
    proxy = processes.processor_time(way.proxy.pid) if way.proxy is not None else processes.ProcessorTime(0.0, 0.0)
    return {
        "proxy_user_s": proxy.user_s,
        "proxy_system_s": proxy.system_s,
        "load_cpu_s": processes.cpu_s(load.pid),
        "broker_cpu_s": processes.cpu_s(way.broker.pid),
    }


def _since(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    return {name: round(after[name] - value, 3) for name, value in before.items()}


def _per_message(used: dict[str, float], messages: int) -> dict[str, float]:
    user_us, system_us = (used[name] / messages * 1e6 for name in ("proxy_user_s", "proxy_system_s"))
    return {
        "cpu_us_per_message": round(user_us + system_us, 3),
        "user_us_per_message": round(user_us, 3),
        "system_us_per_message": round(system_us, 3),
    }


def _apart(way: Way, *loads: Child) -> None:
    """The proxy on the first processor, everything else on the second, where there are two."""
    available = sorted(os.sched_getaffinity(0))
    if len(available) < 2:
        return
    if way.proxy is not None:
        processes.pin(way.proxy.pid, {available[0]})
    for pid in (way.broker.pid, *(load.pid for load in loads)):
        processes.pin(pid, {available[1]})
