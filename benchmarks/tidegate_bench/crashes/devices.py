"""Devices as a process that no fault hits: ``python -m tidegate_bench.crashes.devices --state DIR --records FILE``.

It is told ``go`` and ``pause`` on standard input. After ``pause`` it waits until all that it sent is acknowledged, and
then says on standard output, as one line of JSON, how much that was so far.
"""

import argparse
import asyncio
import json
import random
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec

from tidegate.bus.installation import load_installation
from tidegate.bus.issued import Credentials
from tidegate.devices.publisher import Publisher
from tidegate.devices.publisher_settings import PublisherSettings
from tidegate.model.readings import Reading
from tidegate_bench.crashes.records import RecordFile
from tidegate_bench.crashes.sending import AwkwardDevice, Repeater
from tidegate_bench.rig.credentials import credentials

GO, PAUSE = "go", "pause"
PREFIX = "awkward"
CONNECTIONS = 6


def applications() -> list[dict[str, Any]]:
    """What gateways have to know of the connections: each speaks for its own devices."""
    return [{"name": _name(number), "speaks_for": [f"{_name(number)}-*"]} for number in range(CONNECTIONS)]


def _name(number: int) -> str:
    return f"{PREFIX}-{number}"


class Line:
    """One connection and the devices behind it."""

    def __init__(
        self,
        number: int,
        seed: str,
        address: tuple[str, int],
        as_whom: Credentials,
        *,
        records: RecordFile,
        devices: int,
    ) -> None:
        chance = random.Random(f"{seed}/{number}")  # noqa: S311 - what is sent is seeded
        self._records = records
        self._repeater = Repeater(chance)
        self._devices = [AwkwardDevice(f"{_name(number)}-{index}", chance) for index in range(devices)]
        user, password = as_whom(_name(number))
        self.publisher = Publisher(
            client_id=_name(number),
            addresses=(address,),
            user=user,
            password=password,
            acknowledgements=records,
            settings=PublisherSettings(acknowledge_timeout_s=6.0, connect_timeout_s=3.0, backoff_s_max=1.0),
            jitter=chance,
        )
        self.repeated = 0

    async def send(self, going: asyncio.Event, pause_s: float) -> None:
        """Each device in turn, as long as that is wanted."""
        while True:
            for device in self._devices:
                await going.wait()
                reading = device.reading(time.time())
                self._records.sent(device.name, reading.boot or 0, reading.seq or 0, _payload(reading))
                await self._publish(device.name, reading)
                self._repeater.note(device.name, reading)
                again = self._repeater.repeat()
                if again is not None:
                    self.repeated += 1
                    await self._publish(*again)
                await asyncio.sleep(pause_s)

    async def _publish(self, device: str, reading: Reading) -> None:
        while not self.publisher.offer(device, reading):
            await self.publisher.changed()


def _payload(reading: Reading) -> str:
    return msgspec.json.encode(reading).decode()


class Orders:
    """What it was told last. A thread reads, because standard input may be anything."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.going, self.draining, self.ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        for line in sys.stdin:
            self._loop.call_soon_threadsafe(self._hear, line.strip())
        self._loop.call_soon_threadsafe(self.ended.set)

    def _hear(self, order: str) -> None:
        if order == GO:
            self.going.set()
        elif order == PAUSE:
            self.going.clear()
            self.draining.set()


async def run(lines: Sequence[Line], rate_per_s: float) -> None:
    """Until standard input ends."""
    orders = Orders(asyncio.get_running_loop())
    pause_s = len(lines) / rate_per_s
    async with AsyncExitStack() as stack:
        for line in lines:
            await stack.enter_async_context(line.publisher)
        sending = [asyncio.create_task(line.send(orders.going, pause_s)) for line in lines]
        telling = asyncio.create_task(_tell(orders, lines))
        ended = asyncio.create_task(orders.ended.wait())
        done, _ = await asyncio.wait([*sending, telling, ended], return_when=asyncio.FIRST_COMPLETED)
        for task in (*sending, telling, ended):
            task.cancel()
        for task in done:
            task.result()


async def _tell(orders: Orders, lines: Sequence[Line]) -> None:
    while True:
        await orders.draining.wait()
        # A sender may be between two steps of a reading, or wait for room; both end by themselves.
        while not orders.going.is_set() and any(line.publisher.in_flight for line in lines):
            await asyncio.sleep(0.05)
        if orders.going.is_set():
            orders.draining.clear()
            continue
        orders.draining.clear()
        counters = [line.publisher.counters for line in lines]
        answer = {
            "sent": sum(each.sent for each in counters),
            "acked": sum(each.acked for each in counters),
            "resent": sum(each.resent for each in counters),
            "reconnects": sum(each.reconnects for each in counters),
            "repeated": sum(line.repeated for line in lines),
        }
        print(json.dumps(answer), flush=True)  # noqa: T201


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m tidegate_bench.crashes.devices")
    parser.add_argument("--state", type=Path, required=True, help="directory of the running installation")
    parser.add_argument("--records", type=Path, required=True, help="where to write what was sent and acknowledged")
    parser.add_argument("--seed", required=True)
    parser.add_argument("--connections", type=int, default=CONNECTIONS)
    parser.add_argument("--devices", type=int, default=8, help="behind each connection")
    parser.add_argument("--rate", type=float, default=200.0, help="readings a second in all")
    given = parser.parse_args(arguments)
    installation = load_installation(given.state)
    address, as_whom = installation.gateway_mqtt, credentials(installation)
    assert address is not None

    async def all_of_it() -> None:
        records = RecordFile(given.records)
        with records:
            lines = [
                Line(number, given.seed, address, as_whom, records=records, devices=given.devices)
                for number in range(given.connections)
            ]
            await run(lines, given.rate)

    asyncio.run(all_of_it())


if __name__ == "__main__":
    main()
