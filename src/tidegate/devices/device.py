"""The library a device program uses: sample as often as you like, it sends as often as the platform can take.

    async with Device("pump-7", addresses=[("127.0.0.1", 1883)], acknowledgements=Path("pump-7.acks")) as device:
        device.sample(21.5)
        await device.drain(5)

A device sends at most once per interval in force (``pacing``), or on change where it has a dead band (``dead_band``),
and combines the samples in between (``aggregation``). It holds one aggregate and a few messages that wait for their
acknowledgement; while there is no room for another message, samples go on being combined. So its memory is bounded and
``sample`` never blocks, whatever happens to the network.
"""

import asyncio
import random
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tidegate.devices import boots
from tidegate.devices.acknowledgements import AckFile
from tidegate.devices.aggregation import Aggregate
from tidegate.devices.dead_band import SILENCE_S_MAX, DeadBand
from tidegate.devices.pacing import Pacing
from tidegate.devices.publisher import Publisher
from tidegate.devices.publisher_settings import PublisherSettings
from tidegate.devices.topics import check_class
from tidegate.model.advice import Advice
from tidegate.model.devices import check_device
from tidegate.model.errors import UserError

WINDOW = 8
DEFAULT_INTERVAL_S = 0.5
# Event loops may count in milliseconds: a shorter timer could fire before its time again and again.
_TIMER_S_MIN = 0.001


class DeviceCounters(msgspec.Struct, frozen=True, kw_only=True):
    """What a device did. After a complete drain ``samples_acked`` equals ``samples``."""

    samples: int
    sent: int  # messages, each counted once
    acked: int
    samples_acked: int  # how many samples the acknowledged messages stand for
    resent: int
    reconnects: int


class Device:
    """One device with its own MQTT connection; use it as an asynchronous context manager.

    ``acknowledgements`` is a file of its own, or one that several devices of a process share. ``boot`` must be a number
    that no earlier start of this device had; without it, it is counted in a file beside the acknowledgements.

    A device with a ``device_class`` follows what that class is advised. One with a ``dead_band`` is event-driven: no
    interval concerns it, it sends where a sample differs so much from the last one sent, and after at most
    ``silence_s_max`` where samples wait.
    """

    def __init__(
        self,
        name: str,
        *,
        addresses: Sequence[tuple[str, int]],
        user: str | None = None,
        password: str | None = None,
        default_interval_s: float = DEFAULT_INTERVAL_S,
        device_class: str | None = None,
        dead_band: float | None = None,
        silence_s_max: float = SILENCE_S_MAX,
        acknowledgements: Path | AckFile | None = None,
        boot: int | None = None,
        follows_advice: bool = True,
        chance: random.Random | None = None,
        settings: PublisherSettings | None = None,
    ) -> None:
        check_device(name)
        if device_class is not None:
            check_class(device_class)
        chance = chance or random.Random(name)  # noqa: S311 - it spreads load, it guards nothing
        self.name = name
        self._dead_band = (
            None
            if dead_band is None
            else DeadBand(dead_band, chance, silence_s_max=silence_s_max, device_class=device_class)
        )
        self._timing = self._dead_band or Pacing(default_interval_s, chance, device_class)
        file = AckFile(acknowledgements) if isinstance(acknowledgements, Path) else acknowledgements
        self._owned_file = file if isinstance(acknowledgements, Path) else None
        self._boot = _boot(name, file) if boot is None else boot
        self._seq = 0
        self._samples = 0
        self._waiting: Aggregate | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._publisher = Publisher(
            client_id=name,
            addresses=addresses,
            device_class=device_class,
            user=user,
            password=password,
            acknowledgements=file,
            settings=settings or PublisherSettings(window=WINDOW),
            jitter=chance,
            on_advice=self._follow if follows_advice else None,
            on_acknowledged=self._send_if_due,
        )

    async def __aenter__(self) -> "Device":
        self._loop = asyncio.get_running_loop()
        await self._publisher.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._publisher.__aexit__()
        self._stop_timer()
        if self._owned_file is not None:
            self._owned_file.close()

    @property
    def interval_s(self) -> float:
        """The interval in force; 0 for an event-driven device."""
        return self._timing.interval_s(self._loop.time()) if isinstance(self._timing, Pacing) else 0.0

    @property
    def dead_band(self) -> float | None:
        """The change in force that an event-driven device reports; None for any other."""
        return None if self._dead_band is None else self._dead_band.width(self._loop.time())

    @property
    def connected(self) -> bool:
        return self._publisher.connected

    @property
    def is_advised(self) -> bool:
        """Whether its gateway has agreed to send it advice."""
        return self._publisher.is_advised

    @property
    def last_failure(self) -> str:
        """Why the last connection was lost, for a person."""
        return self._publisher.last_failure

    @property
    def counters(self) -> DeviceCounters:
        done = self._publisher.counters
        return DeviceCounters(
            samples=self._samples,
            sent=done.sent,
            acked=done.acked,
            samples_acked=done.samples_acked,
            resent=done.resent,
            reconnects=done.reconnects,
        )

    def sample(self, value: float, time_s: float | None = None) -> None:
        """Take a sample, of now or of the time given. It is sent at once, or combined with others and sent when due."""
        taken = Aggregate.of(value, time.time() if time_s is None else time_s)
        self._waiting = taken if self._waiting is None else self._waiting.merged(taken)
        self._samples += 1
        if self._dead_band is not None and self._dead_band.sampled(value, self._loop.time()):
            self._stop_timer()
        self._send_if_due()

    async def drain(self, timeout_s: float) -> bool:
        """Send what waits, now and out of turn, and wait until all is acknowledged; False where the time was short."""
        try:
            async with asyncio.timeout(timeout_s):
                hurried = False
                while self._waiting is not None or self._publisher.in_flight:
                    hurried = hurried or self._send()
                    await self._publisher.changed()
        except TimeoutError:
            return False
        return True

    def _follow(self, advice: Advice) -> None:
        self._timing.advise(advice, self._loop.time())
        self._stop_timer()
        self._send_if_due()

    def _send_if_due(self) -> None:
        """Send what waits, or see to it that somebody asks again: a timer, or the next acknowledgement."""
        if self._waiting is None or self._timer is not None:
            return
        now_s = self._loop.time()
        due_s = self._timing.due_s(now_s)
        if due_s <= now_s:
            self._send()
        else:
            self._timer = self._loop.call_at(max(due_s, now_s + _TIMER_S_MIN), self._wake)

    def _wake(self) -> None:
        self._timer = None
        self._send_if_due()

    def _send(self) -> bool:
        """Whether nothing waits any more: while the window is full, what waits goes on waiting."""
        if self._waiting is None:
            return True
        if not self._publisher.has_room:
            return False
        self._publisher.offer(self.name, self._waiting.reading(self._boot, self._seq))
        self._timing.sent(self._loop.time())
        self._seq += 1
        self._waiting = None
        self._stop_timer()
        return True

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _boot(name: str, file: AckFile | None) -> int:
    if file is None:
        raise UserError(f"Device {name} has no boot number: give one, or an acknowledgement file to count it beside.")
    return boots.next_boot(file.path.with_suffix(boots.SUFFIX), time.time())
