"""What the case study leaves out: late and noisy views, lost capacity, a shared bottleneck, unequal messages, size.

Each is the case study's pattern at an overload share of 30 % with one thing made hard. Provisioning is static, so that
only the send rate decides.
"""

import msgspec

from tidegate.experiments import gotin_case
from tidegate.experiments.gotin_case import INTERVAL_S, NODE_RATE_PER_S, SECONDS
from tidegate.sim.scenario import Load, Monitoring, Scenario, Service

SHARE_PERCENT = 30
SURGE_AT_S = 100.0
SURGE_SECONDS = 160.0
SURGE_FACTOR = 1.4
SURGE_NODES = 8


def _base() -> Scenario:
    return gotin_case.scenario(SHARE_PERCENT)


def late_and_noisy() -> Scenario:
    """Views come 5 s late and are wrong by 20 %."""
    base = _base()
    monitoring = msgspec.structs.replace(base.monitoring, delay_s=5.0, noise=0.2)
    return msgspec.structs.replace(base, name="late and noisy monitoring", monitoring=monitoring)


def half_capacity() -> Scenario:
    """Every node works at half its rate for a minute, in the middle of the major peak."""
    base = _base()
    service = msgspec.structs.replace(base.service, capacity=((0.0, 1.0), (190.0, 0.5), (250.0, 1.0)))
    return msgspec.structs.replace(base, name="capacity halved for a minute", service=service)


def external_cap() -> Scenario:
    """A database that all nodes share takes less than they could."""
    base = _base()
    service = msgspec.structs.replace(
        base.service, external_cap_per_s=0.7 * base.service.nodes_at_start * NODE_RATE_PER_S
    )
    return msgspec.structs.replace(base, name="external cap", service=service)


def unequal_costs() -> Scenario:
    """A quarter of the devices sends messages of four times the work, and peaks at another time; costs are not told."""
    base = _base()
    pattern = gotin_case.stretched(SHARE_PERCENT)
    light = tuple((at_s, round(0.6 * devices)) for at_s, devices in pattern)
    heavy = tuple((at_s, max(1, round(0.15 * dict(pattern).get(SECONDS - at_s, devices)))) for at_s, devices in pattern)
    classes = (
        Load(name="telemetry", pattern=light, default_interval_s=INTERVAL_S, cost_known=False),
        Load(name="images", pattern=heavy, default_interval_s=INTERVAL_S, cost=4.0, cost_known=False),
    )
    return msgspec.structs.replace(base, name="unequal costs", classes=classes)


def ten_times() -> Scenario:
    """Ten times the devices, and nodes that are ten times as fast."""
    base = _base()
    pattern = tuple((at_s, 10 * devices) for at_s, devices in gotin_case.stretched(SHARE_PERCENT))
    classes = (Load(name="telemetry", pattern=pattern, default_interval_s=INTERVAL_S),)
    service = msgspec.structs.replace(base.service, rate_per_s=10 * NODE_RATE_PER_S)
    return msgspec.structs.replace(base, name="ten times the devices", classes=classes, service=service)


def hard() -> list[Scenario]:
    return [late_and_noisy(), half_capacity(), external_cap(), unequal_costs(), ten_times()]


def surge(delay_s: float, noise: float) -> Scenario:
    """A steady 90 % of the capacity, and at once 140 % of it."""
    capacity = SURGE_NODES * NODE_RATE_PER_S
    calm, crowd = (round(factor * capacity * INTERVAL_S) for factor in (0.9, SURGE_FACTOR))
    pattern = ((0.0, calm), (SURGE_AT_S, calm), (SURGE_AT_S, crowd), (SURGE_SECONDS, crowd))
    return Scenario(
        name=f"surge, views {delay_s:g} s late" + (f" and wrong by {noise:.0%}" if noise else ""),
        seconds=SURGE_SECONDS,
        classes=(Load(name="telemetry", pattern=pattern, default_interval_s=INTERVAL_S),),
        service=Service(
            rate_per_s=NODE_RATE_PER_S,
            noise=gotin_case.SERVICE_NOISE,
            nodes_at_start=SURGE_NODES,
            nodes_max=SURGE_NODES,
        ),
        monitoring=Monitoring(period_s=gotin_case.PERIOD_S, delay_s=delay_s, noise=noise),
        window_s=3 * gotin_case.PERIOD_S,
    )
