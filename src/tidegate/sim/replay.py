"""Recorded messages played back: as they came, or by devices that send no faster than they are advised."""

import bisect
from collections.abc import Generator, Mapping, Sequence

import simpy

from tidegate.devices.pacing import Pacing
from tidegate.sim.chance import stream
from tidegate.sim.devices import PacedDevice, Surroundings
from tidegate.sim.messages import SimulatedMessage
from tidegate.sim.recording import Recording
from tidegate.sim.samples import RecordedSamples

# Unadvised, a recorded device sends when it did: its pacing must not hold it to an interval of its own.
_UNPACED_S = 1e-3


class RecordedDevice(PacedDevice):
    """It connects with its first message and leaves when its last one is sent."""

    def _set_timer(self) -> None:
        if self._samples.is_over:
            self.leave()
        else:
            super()._set_timer()


class Player:
    """Everything a recording holds."""

    def __init__(self, recording: Recording, around: Mapping[str, Surroundings], seed: int) -> None:
        self._devices = [_device(around[name], device, times_s, seed) for name, device, times_s in recording.devices]
        for name, times_s in recording.free.items():
            around[name].timeline.process(_play(around[name], times_s))
        self._times_s = sorted(
            [at_s for _, _, times_s in recording.devices for at_s in times_s]
            + [at_s for times_s in recording.free.values() for at_s in times_s]
        )

    def end(self) -> None:
        for device in self._devices:
            if device.is_connected:
                device.leave()

    def demand_per_s(self, now_s: float) -> float:
        """As recorded, over the last second."""
        return bisect.bisect_left(self._times_s, now_s) - bisect.bisect_left(self._times_s, now_s - 1)


def _device(around: Surroundings, name: str, times_s: Sequence[float], seed: int) -> RecordedDevice:
    chance = stream(seed, "recorded", around.load.name, name)
    device = RecordedDevice(
        around, Pacing(_UNPACED_S, chance, around.load.name), RecordedSamples(times_s), listens=True
    )
    around.timeline.at(times_s[0], lambda _: device.connect())
    return device


def _play(around: Surroundings, times_s: Sequence[float]) -> Generator[simpy.Event, None, None]:
    """Messages that nobody can hold."""
    timeline, load = around.timeline, around.load
    for at_s in times_s:
        if at_s > timeline.now_s:
            yield timeline.wait(at_s - timeline.now_s)
        around.tally.generated += 1
        around.send(SimulatedMessage(load.name, load.cost, timeline.now_s, 1, timeline.now_s))
