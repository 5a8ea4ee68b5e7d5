"""From a command to the judges of a gateway process, over a real control bus."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from support.bus import ControlBus, forget_all
from support.processes import said
from support.waiting import until_async

from tidegate.bus.documents import IDENTITY_KEYS, Document
from tidegate.bus.watching import Watcher
from tidegate.gateway.identity import verdicts
from tidegate.gateway.identity.following import WATCHED, Following
from tidegate.gateway.identity.judging import Accepted, Identities, Presented
from tidegate.gateway.identity.settings import IdentitySettings
from tidegate.local.chain import Chain
from tidegate.model.installation import Installation
from tidegate.settings.tree import Settings

pytestmark = pytest.mark.live
NOW_S = 2e9


class Judges:
    """What a gateway process would have."""

    def __init__(self, here: Installation) -> None:
        self.identities = Identities(IdentitySettings(), None, lambda: NOW_S)
        self.again: set[str] = set()
        self.watcher = Watcher(here.control_urls, WATCHED, self._changed, name="judges")
        self._following = Following(self.identities, self.watcher.get, lambda names: self.again.update(names or ()))
        self._nudged = asyncio.Event()

    def _changed(self, document: Document[Any], value: Any, _revision: int, _written_s: float) -> None:
        self._following.changed(document, value)
        self._nudged.set()

    async def follow(self) -> None:
        while True:
            await self._nudged.wait()
            self._nudged.clear()
            assert await self._following.catch_up() == ()

    def judge(self, name: str, password: str) -> object:
        return self.identities.judge(Presented(user=name.encode(), password=password.encode()), NOW_S)


@contextlib.asynccontextmanager
async def following(here: Installation) -> AsyncIterator[Judges]:
    judges = Judges(here)
    judges.watcher.start()
    task = asyncio.create_task(judges.follow())
    try:
        yield judges
    finally:
        task.cancel()
        await judges.watcher.stop()


async def device(state: Path, *arguments: str) -> Any:
    return json.loads(await asyncio.to_thread(said, "device", *arguments, "--json", "--state", str(state)))


def test_a_gateway_hears_of_keys_revocations_and_those_who_come_again(installation: Installation, state: Path) -> None:
    async def scenario() -> None:
        forget_all(installation)
        async with following(installation) as judges:
            assert judges.judge("pump-1", "tg1.k1.1.x") == verdicts.KEYS_NOT_KNOWN
            first = (await device(state, "add", "pump-1"))["devices"][0]["password"]
            await until_async(lambda: isinstance(judges.judge("pump-1", first), Accepted))
            await device(state, "revoke", "pump-1", "pump-2")
            await until_async(lambda: judges.judge("pump-1", first) == verdicts.REVOKED)
            await until_async(lambda: judges.again >= {"pump-1", "pump-2"})
            second = (await device(state, "add", "pump-1"))["devices"][0]["password"]
            await until_async(lambda: isinstance(judges.judge("pump-1", second), Accepted))
            assert judges.judge("pump-1", first) == verdicts.REVOKED
            forget_all(installation)
            await asyncio.sleep(0.5)
            assert isinstance(judges.judge("pump-1", second), Accepted), "a lost bus locks nobody out"
            assert judges.judge("pump-1", first) == verdicts.REVOKED, "and lets nobody in"

    asyncio.run(scenario())


def test_whoever_starts_the_brokers_sees_to_the_keys(tmp_path: Path) -> None:
    with Chain(tmp_path, Settings(), lambda _: None, nodes=0) as chain:
        chain.start_brokers()
        with ControlBus(chain.installation) as bus:
            keys = bus.get(IDENTITY_KEYS)
    assert keys is not None
    assert keys.current.id in (tmp_path / "identity.json").read_text()
