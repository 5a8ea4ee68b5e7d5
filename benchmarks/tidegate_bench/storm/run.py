"""``tidegate bench storm``: two thousand clients that connect again without any backoff, and a broker that is bounced.

The clients are connected, the broker is killed and started again, and the clock runs from the moment at which it
accepts TCP connections again until every client has its CONNACK: once with the clients at the broker itself, once
through a gateway, once through it with TLS, by turns. What counts is the ratio within a repetition. The gateway's
memory is the most its processes held until then, over what they held before any client had connected.
"""

import contextlib
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tidegate.brokers.nats.embedded import EmbeddedBrokers
from tidegate.brokers.settings import BrokerSettings
from tidegate.gateway.settings import GatewaySettings
from tidegate.machine.ports import HOST
from tidegate.report.checks import Report
from tidegate.report.progress import Progress
from tidegate_bench.rig.certificates import Certificate
from tidegate_bench.rig.connecting import ConnectTarget, connect_cost_ratio, connect_cost_us, connect_costs
from tidegate_bench.rig.processes import allow_open_files
from tidegate_bench.rig.servers import Starter, starter
from tidegate_bench.storm import checks as storm_checks
from tidegate_bench.storm.bounce import CLIENTS, Crowd, Row, bounced, broker_address, connected
from tidegate_bench.storm.checks import ALONE, DIRECT, SERIES, STORM, STORM_TLS

REPETITIONS = 9
SERIES_STEP_S = 0.5
CONNECT_COST = "connect_cost"


def run(progress: Progress, out: Path | None, *, rounds: int = REPETITIONS) -> Report:
    began_s = time.monotonic()
    allow_open_files()
    rows: list[Row] = []
    with contextlib.ExitStack() as opened:
        place = out or Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="tidegate-bench-")))
        directory = place.absolute()
        brokers = opened.enter_context(EmbeddedBrokers(directory / "brokers", BrokerSettings(nodes=1)))
        stage = Stage(directory, brokers, opened.enter_context(starter(directory)))
        for repetition in range(rounds):
            for what, play in turns(stage, repetition):
                progress.step(f"repetition {repetition + 1} of {rounds}: {CLIENTS:,} clients, {what}")
                rows += [{"repetition": repetition, **row} for row in play(f"{repetition}")]
        rows += stage.connecting(progress)
    rows += storm_checks.summaries(rows)
    return Report("bench storm", rows, storm_checks.checks(rows), round(time.monotonic() - began_s, 1))


class Stage:
    """A broker to be bounced, and what stands before it. A gateway is a fresh one each time, as after a start."""

    def __init__(self, directory: Path, brokers: EmbeddedBrokers, servers: Starter) -> None:
        self._state, self._brokers, self._servers = directory / "brokers", brokers, servers
        self._certificate = Certificate.made(directory)

    def direct(self, name: str) -> Iterator[Row]:
        yield {"part": DIRECT, **connected(self._crowd(f"direct-{name}", broker_address(self._brokers)))}

    def alone(self, name: str) -> Iterator[Row]:
        whole, _ = bounced(self._brokers, self._crowd(f"alone-{name}", broker_address(self._brokers)), None)
        yield {"part": ALONE, **whole}

    def through(self, name: str) -> Iterator[Row]:
        with self._servers.gateway(self._state) as gateway:
            crowd = self._crowd(f"storm-{name}", gateway.address, gateway.state)
            whole, looks = bounced(self._brokers, crowd, gateway)
        yield {"part": STORM, **whole}
        yield from ({"part": SERIES, **look} for look in thinned(looks, SERIES_STEP_S))

    def through_tls(self, name: str) -> Iterator[Row]:
        with self._servers.gateway(self._state, None, self._certificate) as gateway:
            tls_address, certificate = (HOST, gateway.tls_port), self._certificate.certificate
            crowd = self._crowd(f"tls-{name}", tls_address, gateway.state, certificate)
            whole, _ = bounced(self._brokers, crowd, gateway)
        yield {"part": STORM_TLS, **whole}

    def connecting(self, progress: Progress) -> list[Row]:
        """What a client costs that connects while nothing else happens, beside what a forwarder takes for it."""
        with (
            self._servers.gateway(self._state) as gateway,
            self._servers.forwarder(broker_address(self._brokers), processes=GatewaySettings().processes) as forwarder,
        ):
            both = [
                ConnectTarget(name=one.name, address=one.address, pids=(one.pid,), state=one.state or self._state)
                for one in (gateway, forwarder)
            ]
            rows = list(connect_costs(both[0], both[1], connects=CLIENTS, tell=progress.step))
        costs = {f"{one.name}_us": connect_cost_us(rows, one.name) for one in both}
        ratio = connect_cost_ratio(rows, gateway.name, forwarder.name, "connect_cost_vs_forwarder")
        return [*rows, {"part": CONNECT_COST, **costs, **ratio}]

    def _crowd(
        self, name: str, address: tuple[str, int], state: Path | None = None, authority: Path | None = None
    ) -> Crowd:
        return Crowd(name=name, state=state or self._state, address=address, authority=authority)


Play = Callable[[str], Iterator[Row]]


def turns(stage: Stage, repetition: int) -> list[tuple[str, Play]]:
    """In the other order every second time, so that slow moments of the machine meet all alike."""
    order: list[tuple[str, Play]] = [
        ("connecting to the broker", stage.direct),
        (ALONE, stage.alone),
        (STORM, stage.through),
        (STORM_TLS, stage.through_tls),
    ]
    return order[::-1] if repetition % 2 else order


def thinned(looks: list[Row], step_s: float) -> Iterator[Row]:
    """At most one per step, and always the last."""
    next_s = -float("inf")
    for look in looks[:-1]:
        if look["at_s"] >= next_s:
            next_s = look["at_s"] + step_s
            yield look
    yield looks[-1]
