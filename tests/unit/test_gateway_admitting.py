"""Clients that await their turn: nobody is forgotten, and no turn is lost."""

import asyncio

import pytest

from tidegate.gateway.admitting import Admitting
from tidegate.gateway.shared.counting import Counters


async def _turn(admitting: Admitting, ticket: object) -> bool:
    """Wait for a turn as a connection does; one that is given up on leaves the line."""
    turn = asyncio.get_running_loop().create_future()
    admitting.ask(ticket, lambda granted: turn.cancelled() or turn.set_result(granted))
    try:
        return bool(await turn)
    except asyncio.CancelledError:
        admitting.left(ticket)
        raise


async def _connects(admitting: Admitting, ticket: int, failures: dict[int, int]) -> bool:
    """A client whose brokers do not answer so many times, and then do."""
    while await _turn(admitting, ticket):
        await asyncio.sleep(0)
        if failures.get(ticket, 0):
            failures[ticket] -= 1
            admitting.answered(ticket, 0.001, ok=False)
            continue
        admitting.answered(ticket, 0.001, ok=True)
        return True
    return False


@pytest.mark.parametrize("every", [2, 3, 7])
def test_everybody_gets_a_turn_although_brokers_fail_between(every: int) -> None:
    counters = Counters()

    async def storm() -> list[bool]:
        admitting = Admitting(8, 10.0, counters)
        failures = {ticket: 1 + ticket % 3 for ticket in range(0, 300, every)}
        return await asyncio.gather(*(_connects(admitting, ticket, failures) for ticket in range(300)))

    assert all(asyncio.run(asyncio.wait_for(storm(), 20)))
    assert counters.admitting == 0


def test_a_turn_that_nobody_awaits_any_more_goes_to_the_next() -> None:
    async def given_up() -> bool:
        admitting = Admitting(1, 10.0, Counters())
        assert await _turn(admitting, "first")
        waiting = asyncio.create_task(_turn(admitting, "gone"))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        last = asyncio.create_task(_turn(admitting, "last"))
        await asyncio.sleep(0)
        admitting.answered("first", 0.001, ok=True)
        return await asyncio.wait_for(last, 5)

    assert asyncio.run(given_up())


def test_who_waits_too_long_is_told() -> None:
    async def told() -> bool:
        admitting = Admitting(1, 0.05, Counters())
        assert await _turn(admitting, "first")
        return await asyncio.wait_for(_turn(admitting, "second"), 5)

    assert asyncio.run(told()) is False
