"""Documents of the control bus, watched: every change is heard, and nothing is lost while the bus is away."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.bus import ControlBus
from support.waiting import until_async

from tidegate.brokers.nats.embedded import EmbeddedBrokers
from tidegate.brokers.settings import BrokerSettings
from tidegate.bus.knowledge import Entry, Knowledge
from tidegate.bus.watching import Watcher
from tidegate.model.errors import BrokerUnavailableError
from tidegate.model.installation import Installation

pytestmark = pytest.mark.live


@contextlib.asynccontextmanager
async def watching(installation: Installation, heard: list[tuple[str, bytes | None, int]]) -> AsyncIterator[Watcher]:
    def changed(key: str, value: bytes | None, revision: int) -> None:
        heard.append((key, value, revision))

    watcher = Watcher(installation.control_urls, ("one", "two"), changed, name="test", reread_s=0.5)
    watcher.start()
    try:
        yield watcher
    finally:
        await watcher.stop()


async def follow(installation: Installation, knowledge: Knowledge, brokers: EmbeddedBrokers) -> None:
    heard: list[tuple[str, bytes | None, int]] = []
    async with watching(installation, heard) as watcher:
        assert await watcher.first_read(10)
        assert heard == [("one", None, 0), ("two", None, 0)]
        first = await watcher.put("one", b"1")
        await until_async(lambda: heard[2:] == [("one", b"1", first)])
        assert knowledge.put("one", b"forged", revision=first + 7) is None
        await asyncio.sleep(0.2)
        assert len(heard) == 3, "a write that lost its compare-and-set is no change"
        second = knowledge.put("one", b"1")
        assert second is not None
        await until_async(lambda: heard[3:] == [("one", b"1", second)])
        assert await watcher.get("one") == Entry(b"1", second)
        leased = await watcher.put("two", b"lease", lease_s=1)
        await until_async(lambda: heard[4:] == [("two", b"lease", leased), ("two", None, 0)])
        knowledge.delete("one")
        await until_async(lambda: heard[-1] == ("one", None, 0))

        brokers.kill_control()
        before = len(heard)
        await until_async(lambda: not watcher.connected)
        with pytest.raises(BrokerUnavailableError, match="control bus is away"):
            await watcher.put("one", b"2")
        assert len(heard) == before, "what is known stays known"
        brokers.start_control()
        await until_async(lambda: watcher.connected)
        third = await watcher.put("one", b"3")
        await until_async(lambda: heard[before:] == [("one", b"3", third)])


def test_a_watcher_hears_every_change_and_survives_the_bus(tmp_path: Path) -> None:
    with EmbeddedBrokers(tmp_path, BrokerSettings(nodes=1, slices=1)) as brokers:
        assert brokers.installation is not None
        with ControlBus(brokers.installation) as bus:
            asyncio.run(follow(brokers.installation, bus.knowledge, brokers))


def test_a_watcher_waits_for_a_bus_that_is_not_there_yet() -> None:
    async def wait() -> None:
        watcher = Watcher(("nats://control:x@127.0.0.1:1",), ("one",), lambda *_: None, name="test")
        watcher.start()
        assert not await watcher.first_read(0.3)
        with pytest.raises(BrokerUnavailableError, match="one waits"):
            await watcher.get("one")
        await watcher.stop()

    asyncio.run(wait())
