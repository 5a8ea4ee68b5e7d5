"""Ending a task for certain, also one that does not hear it at first."""

import asyncio

import pytest

from tidegate.machine import tasks


async def deaf(times: int) -> None:
    """Loses so many cancellations."""
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            times -= 1
            if times < 0:
                raise


@pytest.mark.parametrize("times", [0, 1, 3])
def test_a_cancellation_is_said_again_until_it_is_heard(times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "GRACE_S", 0.01)

    async def scenario() -> None:
        one, other = asyncio.create_task(deaf(times)), asyncio.create_task(deaf(0))
        await asyncio.sleep(0)
        async with asyncio.timeout(5):
            await tasks.end(one, other)
        assert one.cancelled()
        assert other.cancelled()
        await tasks.end(one)

    asyncio.run(scenario())


def test_nothing_to_end_is_ended_at_once() -> None:
    asyncio.run(tasks.end())


def test_a_task_may_tidy_up_and_its_error_is_not_left_unheard() -> None:
    tidied = []

    async def tidy() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.02)
            tidied.append(True)
            raise OSError("while tidying up")

    async def scenario() -> None:
        task = asyncio.create_task(tidy())
        await asyncio.sleep(0)
        await tasks.end(task)
        assert isinstance(task.exception(), OSError)

    asyncio.run(scenario())
    assert tidied == [True]
