"""What one round of the control loop costs, from a thousand devices to a million: all four policies, 64 slices.

Decisions are per class, not per device. So the same flood is played at every size, with messages, capacity and backlog
in proportion, and the rounds are timed in turns, so that a slow moment of the machine meets all sizes alike. Counting
the devices is the gateways' work, and is not part of a round.
"""

import statistics
import time
from pathlib import Path
from typing import Any

import msgspec

from tidegate.controller.settings import ControllerSettings
from tidegate.model.actions import Advise
from tidegate.model.classes import DEFAULT_CLASSES
from tidegate.model.decisions import Mode
from tidegate.model.observations import BrokerState, ClassState, GatewayState, NodeState, Observation, SliceState
from tidegate.report.checks import Check, Report
from tidegate.report.progress import Progress

DEVICES = (10**3, 10**4, 10**5, 10**6)
GROWTH_MAX = 2.0
ROUNDS = 400
REPETITIONS = 7
RATE_PER_S = 2.0
NODES = 4
SLICES = 64
BROKERS = 3
PERIOD_S = 0.5  # of the rounds, as shipped
SHARE_MAX = 0.02
SHARES = {"alarm": 0.05, "command": 0.15, "telemetry": 0.8}
# What the nodes take, as a share of what all devices want to send.
CAPACITY_SHARE = 0.6


class Flood:
    """Devices that want more than the nodes take, and that follow the advice they get; all as sums."""

    def __init__(self, devices: int) -> None:
        settings = ControllerSettings(policy="adaptive", overload="head_age_s > 1")
        self.loop = settings.control_loop(DEFAULT_CLASSES)
        self.decisions = 0
        self._counts = {name: max(1, round(devices * share)) for name, share in SHARES.items()}
        self._capacity_per_s = CAPACITY_SHARE * RATE_PER_S * sum(self._counts.values())
        self._rates = dict.fromkeys(self._counts, RATE_PER_S)
        self._published = dict.fromkeys(self._counts, 0.0)
        self._committed = 0.0
        self._at_s = 0.0

    def observe(self, passed_s: float) -> Observation:
        self._at_s += passed_s
        for name, devices in self._counts.items():
            self._published[name] += devices * self._rates[name] * passed_s
        arrived = sum(self._published.values())
        self._committed = min(arrived, self._committed + self._capacity_per_s * passed_s)
        waiting = arrived - self._committed
        each = self._committed / NODES
        nodes = tuple(
            NodeState(
                name=f"node-{number}",
                alive=True,
                slices=tuple(range(number, SLICES, NODES)),
                rows=int(each),
                committed_at_s=self._at_s,
                limit_rows=each,
                limit_s=each / (self._capacity_per_s / NODES),
            )
            for number in range(NODES)
        )
        gateway = GatewayState(
            name="gateway-1",
            address="127.0.0.1:1883",
            measured_at_s=self._at_s,
            connections=sum(self._counts.values()),
            publishes=int(arrived),
            acknowledged=int(arrived),
            advised=0,
            classes={
                name: ClassState(devices=devices, publishes=int(self._published[name]))
                for name, devices in self._counts.items()
            },
        )
        return Observation(
            at_s=self._at_s,
            arrived=int(arrived),
            committed=int(self._committed),
            head_age_s=waiting / self._capacity_per_s,
            devices=sum(self._counts.values()),
            committed_at_s=self._at_s,
            gateways=(gateway,),
            brokers=tuple(
                BrokerState(name=f"broker-{n}", address=f"127.0.0.1:{2000 + n}", healthy=True) for n in range(BROKERS)
            ),
            nodes=nodes,
            slices=tuple(
                SliceState(number=n, owner=f"node-{n % NODES}", stored=int(arrived / SLICES), waiting=0, age_s=0.0)
                for n in range(SLICES)
            ),
        )

    def round(self) -> float:
        """Seconds of one round; the devices then follow what it said."""
        observation = self.observe(PERIOD_S)
        began_s = time.perf_counter()
        outcome = self.loop.tick(observation, Mode())
        self.loop.carried_out(outcome.proposals)
        took_s = time.perf_counter() - began_s
        for proposal in outcome.proposals:
            self.decisions += proposal.recorded
            if isinstance(proposal.action, Advise):
                for name, interval_s in proposal.action.advice.classes.items():
                    self._rates[name] = min(RATE_PER_S, 1.0 / interval_s) if interval_s else RATE_PER_S
        return took_s


def run(progress: Progress, out: Path | None) -> Report:  # noqa: ARG001 - nothing is left behind
    began_s = time.monotonic()
    rows = []
    for repetition in range(REPETITIONS):
        progress.step(f"repetition {repetition + 1} of {REPETITIONS}")
        floods = {devices: Flood(devices) for devices in DEVICES}
        took_s: dict[int, list[float]] = {devices: [] for devices in DEVICES}
        for _ in range(ROUNDS):
            for devices, flood in floods.items():
                took_s[devices].append(flood.round())
        rows += [
            {
                "devices": devices,
                "repetition": repetition,
                "tick_us_median": round(statistics.median(values) * 1e6, 2),
                "tick_us_p99": round(statistics.quantiles(values, n=100)[98] * 1e6, 2),
                "decisions": floods[devices].decisions,
                "state_bytes": len(msgspec.json.encode(floods[devices].loop.state)),
            }
            for devices, values in took_s.items()
        ]
    return Report("send-rate-scale", rows, checks(rows), round(time.monotonic() - began_s, 1))


def checks(rows: list[dict[str, Any]]) -> list[Check]:
    """The median over the repetitions of the ratio within each."""
    by_repetition: dict[int, dict[int, float]] = {}
    for row in rows:
        by_repetition.setdefault(row["repetition"], {})[row["devices"]] = row["tick_us_median"]
    growths = [found[max(DEVICES)] / found[min(DEVICES)] for found in by_repetition.values()]
    shares = [found[max(DEVICES)] / 1e6 / PERIOD_S for found in by_repetition.values()]
    return [
        Check.at_most("tick_growth", round(statistics.median(growths), 3), GROWTH_MAX),
        Check.at_most("tick_share", round(statistics.median(shares), 5), SHARE_MAX),
    ]
