"""From tallies to a result: a point of every series each second, and the figures at the end."""

from collections.abc import Iterable, Sequence
from typing import Any

from tidegate.sim.messages import SimulatedMessage
from tidegate.sim.result import ClassResult, Result, Series
from tidegate.sim.scenario import Strategy
from tidegate.sim.tally import LoadTally
from tidegate.sim.world import World


class Measuring:
    def __init__(self, world: World) -> None:
        self._world = world
        self._series: dict[str, list[Any]] = {name: [] for name in Series.__struct_fields__}
        self._sent = self._done = 0
        self._started = dict.fromkeys(world.tallies, 0)

    def step(self) -> None:
        """A point of every series, now."""
        world = self._world
        now_s, service, controller = world.timeline.now_s, world.service, world.controller
        sent = sum(tally.sent for tally in world.tallies.values())
        advice = controller.advice(now_s)
        point = {
            "at_s": now_s,
            "demand_per_s": world.demand_per_s(),
            "arrivals": sent - self._sent,
            "departures": service.done - self._done,
            "capacity_per_s": world.capacity_per_s(),
            "estimate_per_s": controller.capacity_per_s,
            "waiting": service.waiting,
            "head_age_s": service.head_age_s(now_s),
            "delay_s": self._delay_s(),
            "interval_s": 0.0 if advice is None else advice.interval_s,
            "nodes_working": service.nodes.working,
            "devices": sum(tally.devices for tally in world.tallies.values()),
            "phase": controller.phase,
        }
        for name, value in point.items():
            self._series[name].append(value)
        self._sent, self._done = sent, service.done

    def result(self, strategy: Strategy, seed: int) -> Result:
        world = self._world
        scenario, now_s, service = world.scenario, world.timeline.now_s, world.service
        classes = {
            name: _class_result([tally], [one for one in service.queue if one.device_class == name], now_s)
            for name, tally in world.tallies.items()
        }
        together = _class_result(list(world.tallies.values()), service.queue, now_s)
        node_seconds = service.nodes.seconds(now_s)
        return Result(
            **{name: getattr(together, name) for name in ClassResult.__struct_fields__},
            scenario=scenario.name,
            strategy=strategy.title,
            policy=strategy.policy,
            seed=seed,
            seconds=scenario.seconds,
            waiting_end=service.waiting,
            queue_length_mean=world.queue.mean(now_s),
            queue_length_max=world.queue.length_max,
            node_seconds=node_seconds,
            nodes_mean=node_seconds / now_s,
            decisions=world.controller.decisions,
            classes=classes,
            series=Series(**self._series),
        )

    def _delay_s(self) -> float:
        """Of what began to be served since the last point."""
        fresh: list[float] = []
        for name, tally in self._world.tallies.items():
            fresh += tally.delays_s[self._started[name] :]
            self._started[name] = len(tally.delays_s)
        return _mean(fresh)


def _class_result(tallies: Sequence[LoadTally], queued: Iterable[SimulatedMessage], now_s: float) -> ClassResult:
    delays_s = sorted(delay_s for tally in tallies for delay_s in tally.delays_s)
    waited_s = [now_s - message.arrived_s for message in queued]
    readings = sum(tally.readings_processed for tally in tallies)
    device_s = sum(tally.device_s for tally in tallies)
    return ClassResult(
        devices_max=sum(tally.devices_max for tally in tallies),
        generated=sum(tally.generated for tally in tallies),
        sent=sum(tally.sent for tally in tallies),
        processed=sum(tally.processed for tally in tallies),
        readings=readings,
        delay_mean_s=_mean(delays_s),
        delay_p95_s=delays_s[int(0.95 * (len(delays_s) - 1))] if delays_s else 0.0,
        delay_max_s=max(delays_s, default=0.0),
        delay_all_mean_s=_mean(delays_s + waited_s),
        age_mean_s=sum(tally.age_s_sum for tally in tallies) / readings if readings else 0.0,
        age_max_s=max(tally.age_s_max for tally in tallies),
        interval_mean_s=sum(tally.interval_area for tally in tallies) / device_s if device_s else 0.0,
        interval_max_s=max(tally.interval_s_max for tally in tallies),
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
