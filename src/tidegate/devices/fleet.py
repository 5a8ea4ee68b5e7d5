"""A fleet of simulated devices in one process: each is a ``Device`` with its own connection and identity.

How many there are follows a pattern over time. A device that is no longer wanted drains and disconnects; when it is
wanted again it goes on with its sequence, so no identity is ever used twice.

One loop with one heap takes all samples, because a task with a sleep per device would cost more than the devices.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable

from tidegate.devices.acknowledgements import AckFile
from tidegate.devices.device import Device, DeviceCounters
from tidegate.devices.fleet_figures import FleetProgress, FleetSummary
from tidegate.devices.fleet_member import Credentials, Member, make_member
from tidegate.devices.fleet_plan import FleetPlan, is_deaf
from tidegate.devices.pattern import Pattern
from tidegate.devices.publisher import CLOSE_TIMEOUT_S
from tidegate.devices.sampling import Sampling
from tidegate.model.errors import TidegateError
from tidegate.model.installation import Installation

EXIT_UNACKNOWLEDGED = 3
# A fleet keeps its schedule while no more than this share of its samples is late, ...
LATE_SHARE_MAX = 0.001
# ... and each device is connected so soon after it was wanted.
CONNECT_S_MAX = 5.0
DRAIN_S = 15.0
STOP_DRAIN_S = 5.0
# What deaf devices published may wait in a gateway, and so long it is held there at most.
DEAF_DRAIN_S = 30.0
STOPPED_LOOK_S = 0.1
REPORT_S = 1.0
# What falls due within this time goes out together; shorter costs processor time, longer delays readings.
TICK_S = 0.01
ADJUST_S = 0.02
# More at once would overrun the queue of a listener, and wait for the network to repeat them.
DIALLING_MAX = 64
# Then the loop sees to its connections again, however far behind the samples are.
SAMPLES_PER_TURN_MAX = 500


class Fleet:
    """Run it once with ``run``; meanwhile ``follow`` and ``stop`` may be called from the same event loop."""

    def __init__(
        self,
        plan: FleetPlan,
        installation: Installation,
        file: AckFile,
        credentials: Credentials,
        report: Callable[[FleetProgress], None] | None = None,
    ) -> None:
        self._plan, self._installation, self._file, self._report = plan, installation, file, report
        self._credentials = credentials
        self._pattern = plan.pattern
        self._members: list[Member] = []
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

    async def run(self) -> FleetSummary:
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

    def _make_member(self) -> Member:
        return make_member(len(self._members), self._plan, self._installation, self._file, self._credentials)

    async def _open(self, now_s: float) -> None:
        dialling = 0
        for index, since_s in list(self._opening.items()):
            if dialling == DIALLING_MAX:
                break
            while len(self._members) <= index:
                self._members.append(self._make_member())
            member = self._members[index]
            if index in self._sampling and member.device.connected:
                del self._opening[index]
                continue
            self._connected_late |= now_s - since_s > CONNECT_S_MAX
            if index not in self._sampling and index not in self._leaving:
                await member.device.__aenter__()
                self._sampling.begin(index, member.phase_s, now_s)
            dialling += index in self._sampling

    def _dismiss(self, index: int, drain_s: float) -> None:
        if index not in self._sampling:
            return
        self._sampling.end(index)
        if is_deaf(index, self._plan.deaf) and not self._stopped:
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
            FleetProgress(
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

    def _summary(self, seconds: float) -> FleetSummary:
        self._file.flush()
        total = self._total()
        return FleetSummary(
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


async def _leave(device: Device, drain_s: float) -> None:
    try:
        # An acknowledgement file that cannot be written ends the whole fleet: its own loop sees that.
        with contextlib.suppress(TidegateError):
            await device.drain(drain_s)
    finally:
        await device.__aexit__()
