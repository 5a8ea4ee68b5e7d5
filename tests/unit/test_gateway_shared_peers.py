"""Processes of a gateway that ask each other to let a client go."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tidegate.gateway.shared.peers import Mailbox, Peers

CLIENT, CREDENTIALS = b"d" * 16, b"c" * 16


class Asked:
    def __init__(self) -> None:
        self.heard: list[tuple[bytes, bytes]] = []
        self.answer = True
        self.takes_s = 0.0

    async def __call__(self, client: bytes, credentials: bytes) -> bool:
        self.heard.append((client, credentials))
        await asyncio.sleep(self.takes_s)
        return self.answer


@asynccontextmanager
async def two() -> AsyncIterator[tuple[Peers, Peers, Asked]]:
    mailboxes = [Mailbox.open(), Mailbox.open()]
    left, right, asked = Peers(0, mailboxes), Peers(1, mailboxes), Asked()
    left.start(Asked())
    right.start(asked)
    try:
        yield left, right, asked
    finally:
        await left.stop()
        await right.stop()
        for mailbox in mailboxes:
            mailbox.close()


@pytest.mark.parametrize("answer", [True, False])
def test_the_other_process_is_asked_and_its_answer_comes_back(answer: bool) -> None:
    async def talk() -> None:
        async with two() as (left, _, asked):
            asked.answer = answer
            assert await left.ask_to_leave(1, CLIENT, CREDENTIALS, 5.0) is answer
            assert asked.heard == [(CLIENT, CREDENTIALS)]

    asyncio.run(talk())


def test_many_questions_at_once_are_all_answered() -> None:
    async def talk() -> None:
        async with two() as (left, _, asked):
            clients = [number.to_bytes(16, "big") for number in range(200)]
            answers = await asyncio.gather(*(left.ask_to_leave(1, each, CREDENTIALS, 10.0) for each in clients))
            assert all(answers)
            assert sorted(client for client, _ in asked.heard) == clients

    asyncio.run(talk())


def test_who_does_not_answer_in_time_has_not_let_go() -> None:
    async def talk() -> None:
        async with two() as (left, right, asked):
            asked.takes_s = 0.05
            assert not await left.ask_to_leave(1, CLIENT, CREDENTIALS, 0.01)
            await asyncio.sleep(0.1)  # the late answer is for nobody
            asked.takes_s = 0.0
            assert await left.ask_to_leave(1, CLIENT, CREDENTIALS, 5.0)
            await right.stop()
            assert not await left.ask_to_leave(1, CLIENT, CREDENTIALS, 0.01)
            right.start(asked)
            assert await left.ask_to_leave(1, CLIENT, CREDENTIALS, 5.0), "a replacement has the same mailbox"

    asyncio.run(talk())
