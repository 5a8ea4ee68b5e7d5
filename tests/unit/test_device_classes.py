"""A device with a class follows what its class is advised, and says its class in its topic. No broker is needed."""

import asyncio
from collections.abc import Callable

import pytest

from tidegate.devices.device import WINDOW, Device
from tidegate.devices.topics import topic_of
from tidegate.model.advice import Advice
from tidegate.model.errors import UserError

NOWHERE = [("127.0.0.1", 1)]
ADVICE = Advice(
    interval_s=2, lifetime_s=60, classes={"alarm": 0.0, "command": 0.7, "telemetry": 9.0}, dead_bands={"alarm": 4.0}
)


@pytest.mark.parametrize(("device_class", "topic"), [(None, b"telemetry/pump-7"), ("alarm", b"telemetry/pump-7/alarm")])
def test_a_topic_says_the_class(device_class: str | None, topic: bytes) -> None:
    assert topic_of("pump-7", device_class) == topic


@pytest.mark.parametrize("wrong", ["", "Alarm", "a/b", "+", "a" * 33, "1st"])
def test_what_can_be_no_class_is_refused(wrong: str) -> None:
    with pytest.raises(UserError, match="is no name of a class"):
        Device("d", addresses=NOWHERE, boot=0, device_class=wrong)


@pytest.mark.parametrize(
    ("device_class", "interval_s"),
    [
        pytest.param(None, 2.0, id="no class: what all are advised"),
        pytest.param("unheard-of", 2.0, id="a class that is not named: what all are advised"),
        pytest.param("telemetry", 9.0, id="held more than others"),
        pytest.param("command", 0.7, id="held less than others"),
        pytest.param("alarm", 0.5, id="not held: its default"),
    ],
)
def test_each_class_has_its_interval(device_class: str | None, interval_s: float) -> None:
    async def use() -> tuple[float, float | None]:
        async with Device("d", addresses=NOWHERE, boot=0, device_class=device_class) as device:
            device._follow(ADVICE)
            return device.interval_s, device.dead_band

    assert asyncio.run(use()) == (interval_s, None)


@pytest.mark.parametrize(("device_class", "width"), [(None, 1.0), ("command", 1.0), ("alarm", 4.0)])
def test_an_event_driven_device_widens_its_band_and_has_no_interval(device_class: str | None, width: float) -> None:
    async def use() -> None:
        async with Device("d", addresses=NOWHERE, boot=0, device_class=device_class, dead_band=1.0) as device:
            device.sample(20.0)
            device._follow(ADVICE)
            assert (device.interval_s, device.dead_band) == (0.0, width)
            for step in range(1, 9):
                device.sample(20.0 + step / 2)
            # The samples after it are 0.5 to 4.0 away from it.
            assert device.counters.sent == 1 + 4 / width
            assert device.counters.samples == 9

    asyncio.run(use())


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.005)


def test_where_nothing_changes_something_is_sent_all_the_same() -> None:
    async def use() -> None:
        async with Device("d", addresses=NOWHERE, boot=0, dead_band=1.0, silence_s_max=0.2) as device:
            device.sample(20.0)
            device.sample(20.1)
            device.sample(20.2)
            assert device.counters.sent == 1
            await until(lambda: device.counters.sent == 2)
            await asyncio.sleep(0.3)
            assert device.counters.sent == 2, "nothing waits, so nothing is sent"

    asyncio.run(use())


def test_while_there_is_no_room_changes_are_combined() -> None:
    async def use() -> None:
        async with Device("d", addresses=NOWHERE, boot=0, dead_band=1.0) as device:
            for number in range(100):
                device.sample(float(number % 2 * 5))
            assert (device.counters.samples, device.counters.sent) == (100, WINDOW)
            assert device._waiting is not None
            assert device._waiting.count == 100 - WINDOW

    asyncio.run(use())
