"""Readings at a fixed rate over a few shared connections: ``python -m tidegate_bench.rig.steady_load --state DIR ...``.

What it sends is a pure function of its arguments: reading number g of the load belongs to device g mod devices, has the
sequence g div devices and is due at g / rate; its value depends on the seed, the device and the sequence, and so does
its time when an event time is given. Two runs with the same arguments therefore store the same readings.

It goes to the brokers, as a gateway does, or through a gateway: there it is an application that speaks for its devices.
"""

import argparse
import asyncio
import random
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec

from tidegate.bus.installation import load_installation
from tidegate.devices.acknowledgements import SUFFIX, AckFile
from tidegate.devices.fleet import EXIT_UNACKNOWLEDGED, STOP_DRAIN_S, TICK_S
from tidegate.devices.publisher_settings import WINDOW, PublisherSettings
from tidegate.devices.sampling import LATE_S_MAX
from tidegate.devices.simulated_values import value_of
from tidegate.model.errors import TidegateError, UserError
from tidegate.model.installation import Installation
from tidegate.model.readings import Reading
from tidegate_bench.rig.credentials import credentials
from tidegate_bench.rig.load_publisher import LoadPublisher

APPLICATION = "load"
# What a gateway has to know of it.
IDENTITY = {"applications": [{"name": APPLICATION, "speaks_for": ["*"]}]}


class LoadPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What is sent, until ``count`` readings or ``seconds`` are over; at least one has to be given."""

    devices: int
    connections: int
    rate: float
    seconds: float | None = None
    count: int | None = None
    seed: int = 0
    boot: int = 0
    event_time_start: float | None = None
    event_step: float = 1.0
    window: int = WINDOW
    drain_s: float = 30.0
    prefix: str = "device"
    through_gateway: bool = False

    def __post_init__(self) -> None:
        if self.seconds is None and self.count is None:
            raise ValueError("a load needs an end: give --seconds or --count")
        if not 1 <= self.connections <= self.devices:
            raise ValueError(f"{self.connections} connections for {self.devices} devices: give 1 to {self.devices}")
        if not self.rate > 0:
            raise ValueError(f"a rate of {self.rate:g} readings a second: give more than 0")

    def device(self, index: int) -> str:
        return f"{self.prefix}-{index:06d}"

    def readings_max(self) -> int:
        by_time = None if self.seconds is None else int(self.rate * self.seconds)
        return min(limit for limit in (by_time, self.count) if limit is not None)

    def reading(self, index: int, seq: int) -> Reading:
        start = self.event_time_start
        at = time.time() if start is None else start + seq * self.event_step
        return Reading(value=value_of(self.seed, index, seq), boot=self.boot, seq=seq, time=at)


class LoadSummary(msgspec.Struct, frozen=True, kw_only=True):
    """How it went. ``rate_kept`` is False when some reading left more than half a second after it was due."""

    sent: int
    acked: int
    reconnects: int
    late_s_max: float
    rate_kept: bool
    resent: int
    seconds: float


async def run(plan: LoadPlan, installation: Installation, acks: Path, stop: asyncio.Event) -> LoadSummary:
    """Send the plan until its end or until ``stop`` is set, then wait for what is still unacknowledged."""
    loop = asyncio.get_running_loop()
    async with AsyncExitStack() as stack:
        file = stack.enter_context(AckFile(acks / f"{plan.prefix}-boot-{plan.boot}{SUFFIX}"))
        publishers = [
            await stack.enter_async_context(_publisher(plan, installation, number, file))
            for number in range(plan.connections)
        ]
        start_s = loop.time()
        stopped = asyncio.create_task(stop.wait())
        sending = asyncio.gather(
            *(_send(plan, publisher, number, start_s, stop) for number, publisher in enumerate(publishers))
        )
        # A sender that waits for a full window does not see the stop: it is cancelled, between two readings.
        await asyncio.wait((sending, stopped), return_when=asyncio.FIRST_COMPLETED)
        if sending.done():
            stopped.cancel()
            sending.result()
        else:
            sending.cancel()
        await asyncio.gather(sending, stopped, return_exceptions=True)
        sent_s = loop.time() - start_s
        drain_s = min(STOP_DRAIN_S, plan.drain_s) if stop.is_set() else plan.drain_s
        await asyncio.gather(*(publisher.drain(drain_s) for publisher in publishers))
        _say_what_is_missing(publishers)
    return _summarise(publishers, sent_s)


def _publisher(plan: LoadPlan, installation: Installation, number: int, file: AckFile) -> LoadPublisher:
    addresses, user, password = installation.mqtt_addresses, installation.mqtt_user, installation.mqtt_password
    if plan.through_gateway:
        addresses, (user, password) = installation.device_addresses, credentials(installation)(APPLICATION)
    first = number % max(1, len(addresses))
    return LoadPublisher(
        client_id=f"{plan.prefix}-{plan.boot}-{number}",
        # Each connection begins with another broker.
        addresses=(*addresses[first:], *addresses[:first]),
        user=user,
        password=password,
        acknowledgements=file,
        settings=PublisherSettings(window=plan.window),
        jitter=random.Random(f"{plan.seed}/{number}"),  # noqa: S311 - it spreads load, it guards nothing
    )


async def _send(plan: LoadPlan, publisher: LoadPublisher, number: int, start_s: float, stop: asyncio.Event) -> None:
    """The readings of every device of one connection, each when it is due."""
    loop = asyncio.get_running_loop()
    devices = [(index, plan.device(index)) for index in range(number, plan.devices, plan.connections)]
    end_s = float("inf") if plan.seconds is None else start_s + plan.seconds
    readings_max, seq = plan.readings_max(), 0
    while True:
        for index, device in devices:
            position = seq * plan.devices + index
            if position >= readings_max:
                return
            due_s = start_s + position / plan.rate
            wait_s = due_s - loop.time()
            if wait_s > 0:
                await asyncio.sleep(max(wait_s, TICK_S))
            # A little jitter at the very end does not change which readings a run consists of.
            if stop.is_set() or loop.time() > end_s + LATE_S_MAX:
                return
            await publisher.publish(device, plan.reading(index, seq), due_s=due_s)
        seq += 1


def _say_what_is_missing(publishers: Sequence[LoadPublisher]) -> None:
    for publisher in publishers:
        if publisher.in_flight:
            reason = publisher.last_failure or "Its broker did not acknowledge in time"
            sys.stderr.write(f"{publisher.in_flight} readings are not acknowledged. {reason}.\n")


def _summarise(publishers: Sequence[LoadPublisher], seconds: float) -> LoadSummary:
    counters = [publisher.counters for publisher in publishers]
    late_s_max = max(publisher.late_s_max for publisher in publishers)
    return LoadSummary(
        sent=sum(each.sent for each in counters),
        acked=sum(each.acked for each in counters),
        reconnects=sum(each.reconnects for each in counters),
        resent=sum(each.resent for each in counters),
        late_s_max=round(late_s_max, 3),
        rate_kept=late_s_max <= LATE_S_MAX,
        seconds=round(seconds, 3),
    )


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tidegate_bench.rig.steady_load",
        description="Simulated devices that publish at QoS 1 and write down what was acknowledged.",
        epilog="Example: --state .tidegate --acks a --devices 200 --connections 8 --rate 4000 --seconds 20",
    )
    add = parser.add_argument
    add("--state", type=Path, required=True, help="directory of the running installation")
    add("--acks", type=Path, required=True, help="directory for the acknowledgement file")
    add("--devices", type=int, default=200)
    add("--connections", type=int, default=8, help="MQTT connections that the devices share")
    add("--rate", type=float, default=1000.0, help="readings a second, all devices together")
    add("--seconds", type=float, help="stop after this long")
    add("--count", type=int, help="stop after so many readings, however long they take")
    add("--seed", type=int, default=0)
    add("--boot", type=int, default=0, help="the boot number in every reading's identity")
    add("--event-time-start", type=float, help="time of every device's first reading, instead of the clock")
    add("--event-step", type=float, default=1.0, help="seconds of event time between two readings of a device")
    add("--window", type=int, default=WINDOW, help="unacknowledged readings per connection")
    add("--drain-s", type=float, default=30.0, help="how long to wait for the last acknowledgements")
    add("--prefix", default="device", help="the devices' names begin so, and so does the file's")
    add("--through-gateway", action="store_true", help=f"as the application {APPLICATION}, which it has to know")
    add("--json", action="store_true", help="one JSON line at the end instead of a sentence")
    return parser.parse_args(arguments)


async def _run_until_signal(plan: LoadPlan, installation: Installation, acks: Path) -> LoadSummary:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return await run(plan, installation, acks, stop)


def main(arguments: Sequence[str] | None = None) -> int:
    given = vars(_arguments(arguments))
    state, acks, as_json = given.pop("state"), given.pop("acks"), given.pop("json")
    try:
        try:
            plan = LoadPlan(**given)
        except ValueError as error:
            raise UserError(f"{error}.") from None
        summary = asyncio.run(_run_until_signal(plan, load_installation(state), acks))
    except TidegateError as error:
        print(f"load: {error}", file=sys.stderr)  # noqa: T201
        return 2 if isinstance(error, UserError) else 1
    if as_json:
        print(msgspec.json.encode(summary).decode(), flush=True)  # noqa: T201
    else:
        print(  # noqa: T201
            f"{summary.acked:,} of {summary.sent:,} readings acknowledged in {summary.seconds:g} s, "
            f"{summary.reconnects} reconnects, at most {summary.late_s_max:g} s late."
        )
    return 0 if summary.acked == summary.sent else EXIT_UNACKNOWLEDGED


if __name__ == "__main__":
    sys.exit(main())
