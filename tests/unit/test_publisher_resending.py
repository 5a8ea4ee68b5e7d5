"""The publisher against a broker that a test scripts: what it sends, resends, writes down and counts."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tidegate.devices.acknowledgements import SUFFIX, AckFile, read_file
from tidegate.devices.publisher_settings import PublisherSettings
from tidegate.model.errors import TidegateError, UserError
from tidegate.model.readings import Reading
from tidegate_bench.rig.load_publisher import LoadPublisher

ACCEPTED, NOT_AUTHORISED = b"\x20\x02\x00\x00", b"\x20\x02\x00\x05"
QUICK = PublisherSettings(window=4, backoff_s_min=0.01, backoff_s_max=0.05, connect_timeout_s=0.5)


class Published(NamedTuple):
    topic: str
    payload: bytes
    packet_id: int
    duplicate: bool


class Session:
    """One accepted connection, seen from the broker."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def packet(self) -> tuple[int, bytes]:
        first, length, shift = (await self.reader.readexactly(1))[0], 0, 0
        while True:
            byte = (await self.reader.readexactly(1))[0]
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return first, await self.reader.readexactly(length)

    async def publish(self) -> Published:
        first, body = await self.packet()
        if first == 0xE0:
            raise ConnectionResetError("the publisher said good-bye")
        assert first & 0xF6 == 0x32, "a publish at QoS 1"
        size = int.from_bytes(body[:2], "big")
        packet_id = int.from_bytes(body[2 + size : 4 + size], "big")
        return Published(body[2 : 2 + size].decode(), body[4 + size :], packet_id, bool(first & 8))

    def acknowledge(self, published: Published) -> None:
        self.writer.write(b"\x40\x02" + published.packet_id.to_bytes(2, "big"))


Script = Callable[[Session], Awaitable[None]]


async def with_broker(scripts: list[Script], use: Callable[[int], Awaitable[None]]) -> None:
    """Each connection runs the next script (the last one again and again) and is closed at its end."""
    failures: list[BaseException] = []
    number = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal number
        script, number = scripts[min(number, len(scripts) - 1)], number + 1
        session = Session(reader, writer)
        try:
            assert (await session.packet())[0] == 0x10
            await script(session)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        except AssertionError as error:
            failures.append(error)
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server, asyncio.timeout(10):
        await use(server.sockets[0].getsockname()[1])
    assert not failures, failures


def publisher(port: int, *, settings: PublisherSettings = QUICK, file: AckFile | None = None) -> LoadPublisher:
    return LoadPublisher(client_id="p", addresses=[("127.0.0.1", port)], settings=settings, acknowledgements=file)


async def acknowledge_all(session: Session) -> None:
    session.writer.write(ACCEPTED)
    while True:
        session.acknowledge(await session.publish())


def reading(seq: int) -> Reading:
    return Reading(value=1.5, boot=2, seq=seq, time=1000.25)


def test_readings_arrive_and_are_written_down(tmp_path: Path) -> None:
    async def use(port: int) -> None:
        with AckFile(tmp_path / f"a{SUFFIX}") as file:
            async with publisher(port, file=file) as sender:
                for seq in range(100):
                    await sender.publish(f"d{seq % 3}", reading(seq))
                assert await sender.drain(5)
            assert (sender.counters.sent, sender.counters.acked, sender.counters.resent) == (100, 100, 0)
            assert sender.counters.reconnects == 0
            stored = read_file(file.path)
            assert stored.column("seq").to_pylist() == list(range(100))
            assert set(stored.column("boot").to_pylist()) == {2}

    asyncio.run(with_broker([acknowledge_all], use))


def test_topic_and_payload() -> None:
    seen: list[Published] = []

    async def script(session: Session) -> None:
        session.writer.write(ACCEPTED)
        seen.append(await session.publish())
        session.acknowledge(seen[0])
        await session.packet()

    async def use(port: int) -> None:
        async with publisher(port) as sender:
            await sender.publish("pump", reading(7))
            assert await sender.drain(5)

    asyncio.run(with_broker([script], use))
    assert seen[0].topic == "telemetry/pump"
    assert seen[0].payload == b'{"value":1.5,"boot":2,"seq":7,"time":1000.25}'


def test_a_full_window_holds_the_caller() -> None:
    async def never_acknowledge(session: Session) -> None:
        session.writer.write(ACCEPTED)
        await session.reader.read()

    async def use(port: int) -> None:
        async with publisher(port) as sender:
            for seq in range(4):
                await sender.publish("d", reading(seq))
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await sender.publish("d", reading(4))
            assert (sender.counters.sent, sender.in_flight) == (4, 4)
            assert not await sender.drain(0.05)

    asyncio.run(with_broker([never_acknowledge], use))


def test_what_was_not_acknowledged_is_sent_again_in_order_and_marked(tmp_path: Path) -> None:
    resent: list[Published] = []
    first: list[Published] = []

    async def acknowledge_the_second_only(session: Session) -> None:
        session.writer.write(ACCEPTED)
        first.extend([await session.publish() for _ in range(4)])
        session.acknowledge(first[1])
        await session.writer.drain()

    async def take_the_rest(session: Session) -> None:
        session.writer.write(ACCEPTED)
        for _ in range(3):
            resent.append(await session.publish())
            session.acknowledge(resent[-1])
        await session.packet()

    async def use(port: int) -> None:
        with AckFile(tmp_path / f"a{SUFFIX}") as file:
            async with publisher(port, file=file) as sender:
                for seq in range(4):
                    await sender.publish("d", reading(seq))
                assert await sender.drain(5)
            assert sender.counters.reconnects == 1
            assert sender.counters.resent == 3
            assert read_file(file.path).column("seq").to_pylist() == [1, 0, 2, 3]

    asyncio.run(with_broker([acknowledge_the_second_only, take_the_rest], use))
    assert not any(each.duplicate for each in first)
    assert all(each.duplicate for each in resent)
    assert [each.payload for each in resent] == [first[0].payload, first[2].payload, first[3].payload]
    assert [each.packet_id for each in resent] == [first[0].packet_id, first[2].packet_id, first[3].packet_id]


def test_what_waited_for_a_connection_is_not_marked_as_sent_before() -> None:
    seen: list[Published] = []

    async def refuse(session: Session) -> None:
        session.writer.write(NOT_AUTHORISED)

    async def accept(session: Session) -> None:
        session.writer.write(ACCEPTED)
        for _ in range(2):
            seen.append(await session.publish())
            session.acknowledge(seen[-1])
        await session.packet()

    async def use(port: int) -> None:
        async with publisher(port) as sender:
            for seq in range(2):
                await sender.publish("d", reading(seq))
            assert await sender.drain(5)
            assert "the user is not authorised" in sender.last_failure
            assert sender.counters.resent == 0

    asyncio.run(with_broker([refuse, refuse, accept], use))
    assert [each.duplicate for each in seen] == [False, False]


def test_a_broker_that_answers_nothing_is_left() -> None:
    async def silent(session: Session) -> None:
        session.writer.write(ACCEPTED)
        await session.reader.read()

    async def use(port: int) -> None:
        settings = PublisherSettings(backoff_s_min=0.01, keep_alive_s=1, acknowledge_timeout_s=0.3)
        async with publisher(port, settings=settings) as sender:
            await sender.publish("d", reading(0))
            assert await sender.drain(8)
            assert sender.counters.reconnects == 1
            assert "did not acknowledge" in sender.last_failure

    asyncio.run(with_broker([silent, acknowledge_all], use))


def test_addresses_are_tried_in_turn() -> None:
    async def use(port: int) -> None:
        closed = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
        dead = closed.sockets[0].getsockname()[1]
        closed.close()
        await closed.wait_closed()
        addresses = [("127.0.0.1", dead), ("127.0.0.1", port)]
        async with LoadPublisher(client_id="p", addresses=addresses, settings=QUICK) as sender:
            await sender.publish("d", reading(0))
            assert await sender.drain(5)

    asyncio.run(with_broker([acknowledge_all], use))


@pytest.mark.parametrize("answer", [b"\xf0\x00", b"\x20\x02\x00"])
def test_nonsense_and_half_an_answer_lead_to_another_try(answer: bytes) -> None:
    async def nonsense(session: Session) -> None:
        session.writer.write(answer)
        await session.writer.drain()

    async def use(port: int) -> None:
        async with publisher(port) as sender:
            await sender.publish("d", reading(0))
            assert await sender.drain(5)

    asyncio.run(with_broker([nonsense, acknowledge_all], use))


def test_an_acknowledgement_that_cannot_be_written_is_not_counted(tmp_path: Path) -> None:
    class FullDisk(AckFile):
        def flush(self) -> None:
            if self._collected:
                raise TidegateError("the disk is full")

    async def use(port: int) -> None:
        file = FullDisk(tmp_path / f"a{SUFFIX}")
        async with publisher(port, file=file) as sender:
            await sender.publish("d", reading(0))
            with pytest.raises(TidegateError, match="full"):
                await sender.drain(5)
            with pytest.raises(TidegateError, match="full"):
                await sender.publish("d", reading(1))
        assert sender.counters.acked == 0
        file._collected.clear()
        file.close()

    asyncio.run(with_broker([acknowledge_all], use))


def test_readings_and_names_that_cannot_be_acknowledged_are_refused() -> None:
    async def use(port: int) -> None:
        async with publisher(port) as sender:
            with pytest.raises(ValueError, match="no identity"):
                await sender.publish("d", Reading(value=1.0))
            with pytest.raises(UserError, match="topic level"):
                await sender.publish("a/b", reading(0))
            assert sender.counters.sent == 0

    asyncio.run(with_broker([acknowledge_all], use))


def test_lateness_against_the_schedule_is_kept() -> None:
    async def use(port: int) -> None:
        async with publisher(port) as sender:
            now = asyncio.get_running_loop().time()
            await sender.publish("d", reading(0), due_s=now - 2)
            await sender.publish("d", reading(1), due_s=now)
            assert 2 <= sender.late_s_max < 3

    asyncio.run(with_broker([acknowledge_all], use))
