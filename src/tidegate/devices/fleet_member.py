"""One device of a simulated fleet. What it samples, and when, depends only on the seed and the device.

Sample ``n`` of device ``i`` is ``value_of(seed, i, n)``, or that of its random walk where it sends on change, and its
phase is fixed.
"""

import itertools
import random
from collections.abc import Callable, Iterator

import msgspec

from tidegate.devices.acknowledgements import AckFile
from tidegate.devices.device import WINDOW, Device
from tidegate.devices.fleet_plan import FleetPlan, is_deaf
from tidegate.devices.publisher_settings import PublisherSettings
from tidegate.devices.simulated_values import random_walk, value_of
from tidegate.model.devices import numbered
from tidegate.model.installation import Installation

# Deaf devices are ordinary MQTT clients, which wait for an acknowledgement for as long as pings are answered.
DEAF_SETTINGS = PublisherSettings(window=WINDOW, keep_alive_s=60, acknowledge_timeout_s=60.0)
# A random walk leaves it with about every second sample; four times as wide, with about every fifteenth.
DEAD_BAND = 0.05


class Member(msgspec.Struct):
    """Present or away."""

    device: Device
    phase_s: float
    values: Iterator[float]


# The user and the password of a device, by its name.
Credentials = Callable[[str], tuple[str, str]]


def make_member(index: int, plan: FleetPlan, here: Installation, file: AckFile, credentials: Credentials) -> Member:
    chance = random.Random(f"{plan.seed}/{index}")  # noqa: S311 - it spreads load, it guards nothing
    phase_s = chance.random() * plan.interval_s
    deaf = is_deaf(index, plan.deaf)
    is_event_driven = plan.mix.is_event_driven(index)
    name = numbered(plan.prefix, index)
    user, password = credentials(name)
    device = Device(
        name,
        addresses=here.device_addresses,
        user=user,
        password=password,
        default_interval_s=plan.interval_s,
        device_class=plan.mix.device_class(index),
        dead_band=DEAD_BAND if is_event_driven else None,
        acknowledgements=file,
        boot=plan.boot,
        follows_advice=not deaf,
        settings=DEAF_SETTINGS if deaf else None,
        chance=chance,
    )
    return Member(device, phase_s, _values(plan.seed, index, is_event_driven=is_event_driven))


def _values(seed: int, index: int, *, is_event_driven: bool) -> Iterator[float]:
    if is_event_driven:
        return random_walk(random.Random(f"{seed}/{index}/walk"))  # noqa: S311 - it simulates a sensor
    return (value_of(seed, index, seq) for seq in itertools.count())
