"""What a controller knows of devices, over a real control bus and a real gateway."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from support.bus import ControlBus, forget_all
from support.clients import CONNACK
from support.controllers import controlling
from support.gateways import STRICT, Running
from support.waiting import until, until_async

from tidegate.bus import identity, register
from tidegate.bus.counting import ShardCounts, refused_altogether
from tidegate.bus.documents import ACCESS, REGISTER, REVOKED
from tidegate.controller import devices
from tidegate.controller.devices import Devices
from tidegate.gateway.identity.settings import IdentitySettings
from tidegate.model.credentials import Keys
from tidegate.model.device_words import lines
from tidegate.model.identity import Access, AppliedAccess
from tidegate.model.installation import Installation
from tidegate.model.registration import shard_of
from tidegate.mqtt.client import encode_connect

pytestmark = pytest.mark.live
NOW_S = 2e9


@pytest.fixture
def bus(installation: Installation) -> Iterator[ControlBus]:
    forget_all(installation)
    with ControlBus(installation) as opened:
        yield opened


@pytest.fixture
def keys(bus: ControlBus, tmp_path: Path) -> Keys:
    return identity.settle(bus, tmp_path)


def asked(here: Installation, use: Callable[[Devices], Awaitable[None]]) -> None:
    async def main() -> None:
        known = Devices(here, "test")
        try:
            await known.read()
            await use(known)
        finally:
            await known.close()

    asyncio.run(main())


# -- counting


def test_only_shards_that_were_put_since_are_read_again(bus: ControlBus, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"pump-{number}" for number in range(300)]
    register.change(bus, names, lambda entry: entry.added(NOW_S))
    counts, decoded = ShardCounts(bus, REGISTER, len), list[str]()
    taken = counts._take
    monkeypatch.setattr(counts, "_take", lambda shard, entry: (decoded.append(shard), taken(shard, entry)))
    assert counts.read() == 300
    assert sorted(decoded) == bus.names(REGISTER)
    decoded.clear()
    assert (counts.read(), decoded) == (300, [])
    register.change(bus, ["one-more"], lambda entry: entry.added(NOW_S))
    assert (counts.read(), decoded) == (301, [shard_of("one-more")])


def test_a_shard_that_is_deleted_or_damaged_is_no_longer_counted(bus: ControlBus) -> None:
    register.change(bus, ["a", "b"], lambda entry: entry.added(NOW_S))
    counts = ShardCounts(bus, REGISTER, len)
    assert counts.read() == 2
    bus.put_raw(f"devices.{shard_of('a')}", b"{")
    assert counts.read() is None, "what is not known is no zero"
    assert "'devices." in counts.alarms[0]
    bus.delete(REGISTER, shard_of("a"))
    assert (counts.read(), counts.alarms) == (1, ())


def test_a_bus_that_was_lost_is_counted_anew(bus: ControlBus) -> None:
    register.change(bus, ["a", "b"], lambda entry: entry.added(NOW_S))
    counts = ShardCounts(bus, REGISTER, len)
    assert counts.read() == 2
    counts._revision = 10**9  # as one has it whose bus began anew
    register.change(bus, ["c"], lambda entry: entry.added(NOW_S))
    assert counts.read() == 3


def test_who_was_only_given_a_new_password_is_not_revoked(bus: ControlBus) -> None:
    register.change(bus, ["a"], lambda entry: entry.rotated(NOW_S, 60.0))
    register.change(bus, ["b"], lambda entry: entry.revoked(NOW_S))
    assert ShardCounts(bus, REVOKED, refused_altogether).read() == 1


# -- what is shown


def test_a_controller_shows_counts_access_and_keys_and_no_secret(
    installation: Installation, bus: ControlBus, keys: Keys, tmp_path: Path
) -> None:
    register.change(bus, ["a", "b", "c"], lambda entry: entry.added(NOW_S))
    register.change(bus, ["c"], lambda entry: entry.revoked(NOW_S))
    bus.put(ACCESS, AppliedAccess(access=Access(), name="mine.yaml", applied_at_s=NOW_S))
    rotated = identity.rotate_key(bus, tmp_path)
    here = msgspec.structs.replace(installation, gateway_mqtt=("127.0.0.1", 1))

    async def scenario() -> None:
        async with controlling(here) as controller:
            await until_async(lambda: controller.view().identity.registered is not None)
            view, first = controller.view(), controller.devices.first_reading()
            assert (view.identity.registered, view.identity.revoked) == (3, 1)
            assert (view.identity.access_name, view.identity.access_applied_at_s) == ("mine.yaml", NOW_S)
            assert (view.identity.key_id, view.identity.previous_key_id) == (rotated.current.id, keys.current.id)
            assert first is not None
            for shown in (repr(view), msgspec.json.encode(view).decode(), repr(first), repr(controller.devices.state)):
                assert first.password not in shown

    asyncio.run(scenario())


def test_a_damaged_document_is_named_and_hides_nothing_else(
    installation: Installation, bus: ControlBus, keys: Keys
) -> None:
    register.change(bus, ["a"], lambda entry: entry.added(NOW_S))
    bus.put_raw("access", b"{")

    async def use(known: Devices) -> None:
        assert (known.state.registered, known.state.key_id) == (1, keys.current.id)
        assert any("'access'" in alarm for alarm in known.alarms)
        bus.delete(ACCESS)
        await known.read()
        assert known.alarms == ()

    asked(installation, use)


def test_a_register_is_not_looked_at_more_than_once_a_minute(
    installation: Installation, bus: ControlBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def use(known: Devices) -> None:
        register.change(bus, ["a"], lambda entry: entry.added(NOW_S))
        await known.read()
        assert known.state.registered == 0
        monkeypatch.setattr(known, "_count_at_s", 0.0)
        await known.read()
        assert known.state.registered == 1

    asked(installation, use)
    assert devices.COUNT_EVERY_S >= 60


# -- a first reading, and one device


def test_the_first_line_lets_its_device_in_and_then_it_can_be_looked_up(
    installation: Installation, bus: ControlBus, keys: Keys
) -> None:
    with Running(installation, STRICT, identity=IdentitySettings()) as gateway:
        here = msgspec.structs.replace(installation, gateway_mqtt=gateway.address)

        def lets_in(password: str) -> bool:
            packet = encode_connect("hello", user="hello", password=password)
            with gateway.raw(packet) as connection:
                return connection.recv(4) == CONNACK

        async def use(known: Devices) -> None:
            first = known.first_reading()
            assert first is not None
            await asyncio.to_thread(until, lambda: lets_in(first.password))  # once the gateway has the keys
            with gateway.raw(encode_connect("hello", user="hello", password=first.password)) as connection:
                assert connection.recv(4) == CONNACK
                report = await known.look_up("hello")
            assert any(line.startswith("Connected to ") for line in lines(report, NOW_S)), report
            await asyncio.to_thread(lets_in, "tg1.wrong")
            report = await known.look_up("hello")
            assert "wrong credentials." in lines(report, NOW_S)[-1]
            assert lines(await known.look_up("nobody"), NOW_S)[-1] == "No gateway has seen it lately."

        asked(here, use)


def test_the_first_line_has_the_password_that_counts_now(
    installation: Installation, bus: ControlBus, keys: Keys
) -> None:
    here = msgspec.structs.replace(installation, gateway_mqtt=("127.0.0.1", 1))

    async def rotated(known: Devices) -> None:
        first = known.first_reading()
        assert first is not None
        assert first.password.startswith(f"tg1.{keys.current.id}.2.")

    async def revoked(known: Devices) -> None:
        assert known.first_reading() is None

    register.change(bus, ["hello"], lambda entry: entry.rotated(NOW_S, 0.0))
    asked(here, rotated)
    register.change(bus, ["hello"], lambda entry: entry.revoked(NOW_S))
    asked(here, revoked)
    asked(installation, revoked)
