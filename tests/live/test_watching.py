"""Documents of the control bus, watched: every change is heard, and nothing is lost while the bus is away."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from support.bus import ControlBus
from support.waiting import until_async

from tidegate.brokers.nats.embedded import EmbeddedBrokers
from tidegate.brokers.settings import BrokerSettings
from tidegate.bus.documents import ADVICE, ROUTES, Document
from tidegate.bus.watching import Watcher
from tidegate.model.advice import Advice
from tidegate.model.errors import BrokerUnavailableError, DamagedDocumentError
from tidegate.model.installation import Installation
from tidegate.model.routes import Routes

pytestmark = pytest.mark.live
Heard = tuple[str, object, int]
NOWHERE = Routes(brokers=())


@contextlib.asynccontextmanager
async def watching(installation: Installation, heard: list[Heard]) -> AsyncIterator[Watcher]:
    def changed(document: Document[Any], value: object, revision: int, _written_s: float) -> None:
        heard.append((document.key, value, revision))

    def damaged(error: DamagedDocumentError) -> None:
        heard.append((error.where, error, 0))

    watcher = Watcher(installation.control_urls, (ADVICE, ROUTES), changed, damaged, name="test", reread_s=0.5)
    watcher.start()
    try:
        yield watcher
    finally:
        await watcher.stop()


def advice(interval_s: float) -> Advice:
    return Advice(interval_s=interval_s, lifetime_s=60)


async def follow(installation: Installation, bus: ControlBus, brokers: EmbeddedBrokers) -> None:
    heard: list[Heard] = []
    async with watching(installation, heard) as watcher:
        assert await watcher.first_read(10)
        assert heard == [("advice", None, 0), ("routes", None, 0)]
        first = await watcher.put(ADVICE, advice(1), lease_s=60)
        await until_async(lambda: heard[2:] == [("advice", advice(1), first)])
        assert bus.put(ADVICE, advice(9), revision=first + 7, lease_s=60) is None
        await asyncio.sleep(0.2)
        assert len(heard) == 3, "a write that lost its compare-and-set is no change"
        second = bus.put(ADVICE, advice(1), lease_s=60)
        assert second is not None
        await until_async(lambda: heard[3:] == [("advice", advice(1), second)])
        leased = await watcher.put(ROUTES, NOWHERE, lease_s=1)
        await until_async(lambda: heard[4:] == [("routes", NOWHERE, leased), ("routes", None, 0)])
        bus.delete(ADVICE)
        await until_async(lambda: heard[-1] == ("advice", None, 0))

        before = len(heard)
        bus.put_raw("routes", b'{"brokers": 7}')
        await until_async(lambda: len(heard) > before)
        assert [(key, type(value)) for key, value, _ in heard[before:]] == [("routes", DamagedDocumentError)]
        await asyncio.sleep(0.7)
        assert len(heard) == before + 1, "a damaged document is told once, not at every look"

        brokers.kill_control()
        before = len(heard)
        await until_async(lambda: not watcher.connected)
        with pytest.raises(BrokerUnavailableError, match="control bus is away: advice waits until it is back"):
            await watcher.put(ADVICE, advice(2), lease_s=60)
        assert len(heard) == before, "what is known stays known"
        brokers.start_control()
        await until_async(lambda: watcher.connected)
        third = await watcher.put(ADVICE, advice(3), lease_s=60)
        await until_async(lambda: heard[before:] == [("advice", advice(3), third)])


def test_a_watcher_hears_every_change_and_survives_the_bus(tmp_path: Path) -> None:
    with EmbeddedBrokers(tmp_path, BrokerSettings(nodes=1, slices=1)) as brokers:
        assert brokers.installation is not None
        with ControlBus(brokers.installation) as bus:
            asyncio.run(follow(brokers.installation, bus, brokers))


def test_a_watcher_waits_for_a_bus_that_is_not_there_yet() -> None:
    async def wait() -> None:
        watcher = Watcher(("nats://control:x@127.0.0.1:1",), (ADVICE,), name="test")
        watcher.start()
        assert not await watcher.first_read(0.3)
        with pytest.raises(BrokerUnavailableError, match="advice waits"):
            await watcher.put(ADVICE, advice(1), lease_s=60)
        await watcher.stop()

    asyncio.run(wait())
