"""What a fleet of simulated devices does: how many there are and when, and what kinds."""

import math

import msgspec

from tidegate.devices.device import DEFAULT_INTERVAL_S
from tidegate.devices.mix import Mix
from tidegate.devices.pattern import Pattern


class FleetPlan(msgspec.Struct, frozen=True, kw_only=True):
    """``deaf`` is the share of devices that ask for no advice; ``endless`` keeps the pattern's last count."""

    pattern: Pattern
    boot: int
    interval_s: float = DEFAULT_INTERVAL_S
    seed: int = 0
    deaf: float = 0.0
    prefix: str = "device"
    endless: bool = False
    mix: Mix = Mix()


def is_deaf(index: int, share: float) -> bool:
    """Spread evenly over the devices, so that every count of them has its share."""
    return math.floor((index + 1) * share) > math.floor(index * share)
