"""A fleet of simulated devices in one process: each is a ``Device`` with its own connection and identity.

How many there are follows a pattern over time. A device that is no longer wanted drains and disconnects; when it is
wanted again it goes on with its sequence, so no identity is ever used twice. What a device samples, and when, depends
only on the seed and the device: value ``n`` of device ``i`` is ``value_of(seed, i, n)``, or that of its random walk
where it sends on change, and its phase is fixed.

One loop with one heap takes all samples, because a task with a sleep per device would cost more than the devices.
"""

import asyncio
import contextlib
import itertools
import math
import random
import time
from collections.abc import Callable, Iterator

import msgspec

from tidegate.devices.acknowledgements import AckFile
from tidegate.devices.device import DEFAULT_INTERVAL_S, WINDOW, Device, DeviceCounters
from tidegate.devices.fleet import STOP_DRAIN_S, TICK_S, value_of
from tidegate.devices.mix import Mix
from tidegate.devices.pattern import Pattern
from tidegate.devices.publisher import CLOSE_TIMEOUT_S, PublisherSettings
from tidegate.devices.random_walk import random_walk
from tidegate.devices.sampling import Sampling
from tidegate.model.errors import TidegateError
from tidegate.model.installation import Installation

# A fleet keeps its schedule while no more than this share of its samples is late, ...
LATE_SHARE_MAX = 0.001
# ... and each device is connected so soon after it was wanted.
CONNECT_S_MAX = 5.0
DRAIN_S = 15.0
# Deaf devices are ordinary MQTT clients, which wait for an acknowledgement for as long as pings are answered.
DEAF_SETTINGS = PublisherSettings(window=WINDOW, keep_alive_s=60, acknowledge_timeout_s=60.0)
# What they published may wait in a gateway, and so long it is held there at most.
DEAF_DRAIN_S = 30.0
STOPPED_LOOK_S = 0.1
REPORT_S = 1.0
ADJUST_S = 0.02
# More at once would overrun the queue of a listener, and wait for the network to repeat them.
DIALLING_MAX = 64
# Then the loop sees to its connections again, however far behind the samples are.
SAMPLES_PER_TURN_MAX = 500
# A random walk leaves it with about every second sample; four times as wide, with about every fifteenth.
DEAD_BAND = 0.05


class SimulationPlan(msgspec.Struct, frozen=True, kw_only=True):
    """``deaf`` is the share of devices that ask for no advice; ``endless`` keeps the pattern's last count."""

    pattern: Pattern
    boot: int
    interval_s: float = DEFAULT_INTERVAL_S
    seed: int = 0
    deaf: float = 0.0
    prefix: str = "device"
    endless: bool = False
    mix: Mix = Mix()

    def is_deaf(self, index: int) -> bool:
        return is_deaf(index, self.deaf)


def is_deaf(index: int, share: float) -> bool:
    """Spread evenly over the devices, so that every count of them has its share."""
    return math.floor((index + 1) * share) > math.floor(index * share)


class Progress(msgspec.Struct, frozen=True, kw_only=True):
    """A moment of a fleet; counters since it began."""

    at_s: float
    devices: int  # wanted
    connected: int
    samples: int
    sent: int
    acked: int
    resent: int
    reconnects: int
    interval_s_mean: float
    late_s_max: float


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """How it went. ``readings`` is how many samples the acknowledged messages stand for."""

    samples: int
    sent: int
    acked: int
    readings: int
    resent: int
    reconnects: int
    kept_schedule: bool
    late_s_max: float
    seconds: float

    @property
    def is_complete(self) -> bool:
        return self.readings == self.samples


class _Member(msgspec.Struct):
    """One simulated device, present or away."""

    device: Device
    phase_s: float
    values: Iterator[float]


class Simulation:
    """Run it once with ``run``; meanwhile ``follow`` and ``stop`` may be called from the same event loop."""

    def __init__(
        self,
        plan: SimulationPlan,
        installation: Installation,
        file: AckFile,
        report: Callable[[Progress], None] | None = None,
    ) -> None:
        self._plan, self._installation, self._file, self._report = plan, installation, file, report
        self._pattern = plan.pattern
        self._members: list[_Member] = []
        self._wanted = 0
        self._opening: dict[int, float] = {}  # since when a device has been wanted that is not connected yet
        self._leaving: dict[int, asyncio.Task[None]] = {}
        self._connected_late = self._stopped = False
        self._start_s = self._pattern_start_s = time.monotonic()
        self._sampling = Sampling(plan.interval_s, self._start_s)

    def follow(self, pattern: Pattern) -> None:
        """Replace the pattern; its time zero is now."""
        self._pattern, self._pattern_start_s = pattern, time.monotonic()

    def stop(self) -> None:
        self._stopped = True

    @property
    def last_failure(self) -> str:
        """Why some device last lost its connection, for a person."""
        return next((failure for member in self._members if (failure := member.device.last_failure)), "")

    async def run(self) -> Summary:
        """Until the pattern's end, or until stopped; then wait for what is still unacknowledged."""
        adjust_s, report_s = self._start_s, self._start_s + REPORT_S
        try:
            while not self._stopped and not self._is_over(now_s := time.monotonic()):
                if now_s >= adjust_s:
                    adjust_s = now_s + ADJUST_S
                    await self._adjust(now_s)
                if now_s >= report_s:
                    report_s += REPORT_S
                    self._tell(now_s)
                await asyncio.sleep(0 if self._take_samples(now_s) else TICK_S)
        finally:
            seconds = time.monotonic() - self._start_s
            await self._leave_all(STOP_DRAIN_S if self._stopped else DRAIN_S)
        return self._summary(seconds)

    def _is_over(self, now_s: float) -> bool:
        return not self._plan.endless and now_s - self._pattern_start_s >= self._pattern.end_s

    async def _adjust(self, now_s: float) -> None:
        """Bring the devices that are there towards the number that is wanted."""
        wanted = self._pattern.devices(now_s - self._pattern_start_s)
        for index in range(self._wanted, wanted):
            self._opening[index] = now_s
        for index in range(wanted, self._wanted):
            self._opening.pop(index, None)
            self._dismiss(index, STOP_DRAIN_S)
        self._wanted = wanted
        await self._open(now_s)

    async def _open(self, now_s: float) -> None:
        dialling = 0
        for index, since_s in list(self._opening.items()):
            if dialling == DIALLING_MAX:
                break
            while len(self._members) <= index:
                self._members.append(self._member(len(self._members)))
            member = self._members[index]
            if index in self._sampling and member.device.connected:
                del self._opening[index]
                continue
            self._connected_late |= now_s - since_s > CONNECT_S_MAX
            if index not in self._sampling and index not in self._leaving:
                await member.device.__aenter__()
                self._sampling.begin(index, member.phase_s, now_s)
            dialling += index in self._sampling

    def _member(self, index: int) -> _Member:
        plan, here = self._plan, self._installation
        chance = random.Random(f"{plan.seed}/{index}")  # noqa: S311 - it spreads load, it guards nothing
        phase_s = chance.random() * plan.interval_s
        is_event_driven = plan.mix.is_event_driven(index)
        device = Device(
            f"{plan.prefix}-{index:06d}",
            addresses=here.device_addresses,
            user=here.mqtt_user,
            password=here.mqtt_password,
            default_interval_s=plan.interval_s,
            device_class=plan.mix.device_class(index),
            dead_band=DEAD_BAND if is_event_driven else None,
            acknowledgements=self._file,
            boot=plan.boot,
            follows_advice=not plan.is_deaf(index),
            settings=DEAF_SETTINGS if plan.is_deaf(index) else None,
            chance=chance,
        )
        return _Member(device, phase_s, _values(plan.seed, index, is_event_driven=is_event_driven))

    def _dismiss(self, index: int, drain_s: float) -> None:
        if index not in self._sampling:
            return
        self._sampling.end(index)
        if self._plan.is_deaf(index) and not self._stopped:
            drain_s = max(drain_s, DEAF_DRAIN_S)
        task = asyncio.create_task(_leave(self._members[index].device, drain_s))
        task.add_done_callback(lambda _: self._leaving.pop(index, None))
        self._leaving[index] = task

    async def _leave_all(self, drain_s: float) -> None:
        for index in range(len(self._members)):
            self._dismiss(index, drain_s)
        leaving = list(self._leaving.values())
        while not self._stopped and not all(task.done() for task in leaving):
            await asyncio.wait(leaving, timeout=STOPPED_LOOK_S)
        if leaving:
            # Some began to leave when there was more time.
            _, late = await asyncio.wait(leaving, timeout=STOP_DRAIN_S + CLOSE_TIMEOUT_S)
            for task in late:
                task.cancel()
        await asyncio.gather(*leaving, return_exceptions=True)

    def _take_samples(self, now_s: float) -> bool:
        """Take the samples that are due; whether some may be left for the next turn."""
        for _ in range(SAMPLES_PER_TURN_MAX):
            index = self._sampling.take(now_s)
            if index is None:
                return False
            member = self._members[index]
            member.device.sample(next(member.values))
        return True

    def _tell(self, now_s: float) -> None:
        self._file.flush()  # raises what makes every further acknowledgement impossible
        if self._report is None:
            return
        total = self._total()
        present = [self._members[index].device for index in self._sampling]
        intervals_s = [device.interval_s for device in present if device.dead_band is None]
        self._report(
            Progress(
                at_s=round(now_s - self._start_s, 3),
                devices=self._wanted,
                connected=sum(device.connected for device in present),
                samples=total.samples,
                sent=total.sent,
                acked=total.acked,
                resent=total.resent,
                reconnects=total.reconnects,
                interval_s_mean=round(sum(intervals_s) / max(1, len(intervals_s)), 3),
                late_s_max=round(self._sampling.late_s_max, 3),
            )
        )

    def _total(self) -> DeviceCounters:
        counters = [member.device.counters for member in self._members]
        names = DeviceCounters.__struct_fields__
        return DeviceCounters(**{name: sum(getattr(each, name) for each in counters) for name in names})

    def _summary(self, seconds: float) -> Summary:
        self._file.flush()
        total = self._total()
        return Summary(
            samples=total.samples,
            sent=total.sent,
            acked=total.acked,
            readings=total.samples_acked,
            resent=total.resent,
            reconnects=total.reconnects,
            kept_schedule=self._sampling.late <= LATE_SHARE_MAX * total.samples and not self._connected_late,
            late_s_max=round(self._sampling.late_s_max, 3),
            seconds=round(seconds, 3),
        )


def _values(seed: int, index: int, *, is_event_driven: bool) -> Iterator[float]:
    if is_event_driven:
        return random_walk(random.Random(f"{seed}/{index}/walk"))  # noqa: S311 - it simulates a sensor
    return (value_of(seed, index, seq) for seq in itertools.count())


async def _leave(device: Device, drain_s: float) -> None:
    try:
        # An acknowledgement file that cannot be written ends the whole fleet: its own loop sees that.
        with contextlib.suppress(TidegateError):
            await device.drain(drain_s)
    finally:
        await device.__aexit__()
