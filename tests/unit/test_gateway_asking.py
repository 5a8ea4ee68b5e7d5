"""A broker that hangs up on somebody: what others hear from it tells whether it is ill."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tidegate.gateway.asking import HUNG_UP, Evidence, ask
from tidegate.model.routes import Broker

PROBE = b"probe"


class Peer:
    """Answers a probe as a test says, and counts those who ask."""

    def __init__(self, answer: bytes | None) -> None:
        self.answer, self.asked = answer, 0
        self.serving: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.asked += 1
        self.serving.add(asyncio.current_task())  # type: ignore[arg-type]
        await reader.read(100)
        if self.answer != b"":
            writer.write(self.answer or b"")
            await reader.read()
        writer.close()
        await writer.wait_closed()


@asynccontextmanager
async def listening(peer: Peer) -> AsyncIterator[Broker]:
    server = await asyncio.start_server(peer.serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    try:
        yield Broker(name="b", host=host, port=port)
    finally:
        server.close()
        await asyncio.gather(*peer.serving, return_exceptions=True)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (b"\x20\x02\x00\x00", 0),
        (b"\x20\x02\x00\x05", 5),
        (b"", HUNG_UP),
        (b"HTTP", HUNG_UP),
        (None, None),
    ],
)
def test_a_question_has_one_of_few_answers(answer: bytes | None, code: int | None) -> None:
    async def scenario() -> int | None:
        async with listening(Peer(answer)) as broker:
            return await ask(broker, PROBE, 0.3)

    assert asyncio.run(scenario()) == code


def test_nobody_is_there() -> None:
    assert asyncio.run(ask(Broker(name="b", host="127.0.0.1", port=1), PROBE, 0.3)) is None


@pytest.mark.parametrize(("answer", "well"), [(b"\x20\x02\x00\x05", True), (b"", False), (None, False)])
def test_a_broker_is_well_where_it_answers_the_gateway_itself(answer: bytes | None, well: bool) -> None:
    async def scenario() -> tuple[list[bool], int]:
        peer = Peer(answer)
        async with listening(peer) as broker:
            evidence = Evidence(PROBE, 0.3)
            found = await asyncio.gather(
                *(evidence.is_well(broker, asyncio.get_running_loop().time()) for _ in range(16))
            )
            return found, peer.asked

    assert asyncio.run(scenario()) == ([well] * 16, 1), "one asks for all"


def test_what_it_answered_others_meanwhile_is_proof_and_what_it_did_before_is_none() -> None:
    async def scenario() -> tuple[bool, bool, int]:
        peer, now_s = Peer(b""), 10.0
        async with listening(peer) as broker:
            evidence = Evidence(PROBE, 0.3, clock=lambda: now_s)
            evidence.answered(broker)
            return await evidence.is_well(broker, 9.0), await evidence.is_well(broker, 11.0), peer.asked

    assert asyncio.run(scenario()) == (True, False, 1)
