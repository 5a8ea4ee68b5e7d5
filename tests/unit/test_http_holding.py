"""Readings by HTTP that wait: each device in a line of its own, bounded, and nothing stays taken that is not used."""

import asyncio
import random
import time
from collections.abc import Coroutine
from typing import Any

import pytest

from tidegate.gateway import http_holding
from tidegate.gateway.connection.advising import AdviceInForce
from tidegate.gateway.gate import Gate
from tidegate.gateway.identity.judging import Identities
from tidegate.gateway.identity.settings import IdentitySettings
from tidegate.gateway.routing import Router
from tidegate.gateway.settings import GatewaySettings, TopicLimit
from tidegate.gateway.shared.memory import Shared
from tidegate.model.advice import Advice
from tidegate.model.classes import DeviceClass
from tidegate.model.limits import LimitMet
from tidegate.model.routes import Routes

SIZE = 100


def gate(**settings: Any) -> Gate:
    chosen = GatewaySettings(**{"hold_s_max": 5.0, **settings})
    shared = Shared.alone(buckets=len(chosen.limits))
    identities = Identities(IdentitySettings(), None, time.time)
    classes = (
        DeviceClass(name="siren", topics=("telemetry/siren",), never_delay=True),
        DeviceClass(name="events", topics=("telemetry/events",), event_driven=True),
        DeviceClass(name="telemetry", topics=("#",)),
    )
    router = Router(Routes(brokers=()), shared, random.Random(0))
    return Gate(chosen, router, AdviceInForce(time.monotonic), classes, shared=shared, identities=identities)


def advise(here: Gate, interval_s: float, revision: int = 1) -> None:
    here.advice.renew(Advice(interval_s=interval_s, lifetime_s=60.0), revision)


def send(
    here: Gate, device: str, client: str | None = None, packet_bytes: int = SIZE
) -> Coroutine[Any, Any, LimitMet | None]:
    return here.http.pass_on(client or device, device, f"telemetry/{device}".encode(), packet_bytes)


async def passes(here: Gate, device: str, client: str | None = None) -> bool:
    return await send(here, device, client) is None


async def spend(here: Gate, device: str) -> None:
    for _ in range(3):
        assert await passes(here, device)


def test_a_line_passes_in_order_at_its_rate_and_leaves_nothing_behind() -> None:
    async def use() -> None:
        here, order = gate(), list[int]()
        advise(here, 0.1)
        await spend(here, "eager")

        async def one(number: int) -> None:
            assert await passes(here, "eager")
            order.append(number)

        began_s = time.monotonic()
        waiting = [asyncio.create_task(one(number)) for number in range(5)]
        await asyncio.sleep(0)
        assert await passes(here, "calm")
        assert time.monotonic() - began_s < 0.09, "one line delays no other"
        (held,) = here.http.held(time.monotonic())
        assert (held.client_id, held.reason, held.publishes) == ("eager", "its own rate", 5)
        assert (here.counters.held, here.counters.held_total) == (5, 5)
        await here.look()
        told = here.state("")
        assert ([one.client_id for one in told.most_held], told.held_clients) == (["eager"], {"its own rate": 1})
        await asyncio.gather(*waiting)
        assert order == [0, 1, 2, 3, 4]
        assert time.monotonic() - began_s > 0.4
        assert (here.counters.held, here.counters.held_total, here.http.held(0.0)) == (0, 5, [])
        assert not here.http._by_client

    asyncio.run(use())


def test_who_cannot_pass_in_time_is_told_at_once() -> None:
    async def use() -> None:
        here = gate(hold_s_max=0.5)
        advise(here, 60.0)
        await spend(here, "deaf")
        began_s = time.monotonic()
        met = await send(here, "deaf")
        assert met is not None
        assert (met.limit, met.rate_per_s) == ("its own rate", 1 / 60)
        assert 50 < met.until_s < 60
        assert time.monotonic() - began_s < 0.3
        assert here.counters.held_total == 0

    asyncio.run(use())


@pytest.mark.parametrize(
    ("settings", "packet_bytes", "held"),
    [
        pytest.param({}, SIZE, http_holding.LINE_MAX, id="as many as a line may have"),
        pytest.param({"held_bytes_max": 1_000}, 300, 3, id="as many bytes as a client may have"),
        pytest.param({"held_bytes_max": 1_000}, 3_000, 1, id="one that is larger than that"),
        pytest.param({"http_requests_max": 8}, SIZE, 2, id="a client's share of all"),
    ],
)
def test_more_than_there_is_room_for_is_refused_at_once(settings: Any, packet_bytes: int, held: int) -> None:
    async def use() -> None:
        here = gate(**settings)
        advise(here, 0.9)
        await spend(here, "eager")
        waiting = [asyncio.create_task(send(here, "eager", packet_bytes=packet_bytes)) for _ in range(held + 3)]
        await asyncio.sleep(0.05)
        refused = [task.result() for task in waiting if task.done()]
        assert len(refused) == 3
        assert {met.limit for met in refused if met is not None} == {"its own rate"}
        assert here.counters.held == held
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        assert (here.counters.held, here.http.held(0.0)) == (0, [])

    asyncio.run(use())


def test_all_that_wait_have_a_bound() -> None:
    async def use() -> None:
        here = gate(http_requests_max=6)
        advise(here, 0.9)
        for number in range(8):
            await spend(here, f"d{number}")
        waiting = [asyncio.create_task(send(here, f"d{number}")) for number in range(8)]
        await asyncio.sleep(0.05)
        assert [task.done() for task in waiting] == [False] * 6 + [True] * 2
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    asyncio.run(use())


def test_who_speaks_for_many_has_each_devices_rate_and_its_own_credits() -> None:
    async def use() -> None:
        here = gate(client_credits_max=10, client_credits_per_s=0.01, hold_s_max=0.1)
        advise(here, 60.0)
        found = [await send(here, f"pump-{number}", "bridge") for number in range(12)]
        assert found[:10] == [None] * 10, "one device's rate does not bind another"
        assert {met.limit for met in found[10:] if met is not None} == {"its own credits"}
        again = await send(here, "pump-11", "other")
        assert again is None, "what a bridge could not pay its device has not paid either"

    asyncio.run(use())


def test_what_may_not_wait_or_is_not_paced_passes() -> None:
    async def use() -> None:
        here = gate(client_credits_max=20, client_credits_per_s=0.01, hold_s_max=0.1)
        advise(here, 60.0)
        assert all([await passes(here, "siren") for _ in range(100)])
        events = [await send(here, "events") for _ in range(21)]
        assert events[:20] == [None] * 20
        assert events[20] is not None
        assert events[20].limit == "its own credits"

    asyncio.run(use())


def test_nothing_is_enforced_where_the_operator_says_so() -> None:
    async def use() -> None:
        here = gate(enforce_advice=False)
        advise(here, 60.0)
        assert all([await passes(here, "deaf") for _ in range(20)])

    asyncio.run(use())


def test_advice_that_ends_lets_those_go_who_wait() -> None:
    async def use() -> None:
        here = gate()
        advise(here, 4.0)
        await spend(here, "eager")
        waiting = asyncio.create_task(passes(here, "eager"))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        here.advice.renew(None, 2)
        began_s = time.monotonic()
        assert await waiting
        assert time.monotonic() - began_s < 1.0

    asyncio.run(use())


def test_a_limit_on_topics_is_one_for_all_devices_and_gives_back_what_is_not_used() -> None:
    async def use() -> None:
        limit = TopicLimit(topics=("telemetry/a", "telemetry/b"), rate_per_s=10, burst=1)
        here = gate(limits=(limit,), hold_s_max=0.25)
        began_s = time.monotonic()
        found = await asyncio.gather(*(send(here, device) for device in ("a", "b") * 4))
        took_s = time.monotonic() - began_s
        passed = sum(met is None for met in found)
        assert 2 <= passed <= 1 + took_s * 10
        limits = {met.limit for met in found if met is not None}
        assert limits == {"the topics telemetry/a, telemetry/b"}
        await asyncio.sleep(0.25)
        assert await passes(here, "a"), "whoever gave up holds no place"
        cancelled = asyncio.create_task(send(here, "b"))
        await asyncio.sleep(0.02)
        cancelled.cancel()
        await asyncio.gather(cancelled, return_exceptions=True)
        await asyncio.sleep(0.15)
        held = here.counters.held_total
        assert await passes(here, "a")
        assert here.counters.held_total == held, "nor does whoever was cut off"

    asyncio.run(use())
