"""The connection that readings by HTTP share: what a broker hears first, and what a reading has as a publish."""

import asyncio
import random
from typing import Any

import pytest
from nowhere import NOWHERE

from tidegate.gateway.dialling_from import Sources
from tidegate.gateway.ingest import Ingest, packet_bytes
from tidegate.gateway.layers.layer import Peer
from tidegate.gateway.layers.proxy import ProxyHeader
from tidegate.gateway.routing import Router
from tidegate.gateway.shared.counting import Counters
from tidegate.gateway.shared.memory import Shared
from tidegate.gateway.shared.tally import ClassTally
from tidegate.model.routes import Broker, Routes

CONNACK, PUBACK = b"\x20\x02\x00\x00", b"\x40\x02\x00\x01"


async def first_heard(sources: Sources, **broker: Any) -> tuple[bytes, tuple[str, int]]:
    """What a broker hears before and with CONNECT, and from where."""
    heard: asyncio.Future[tuple[bytes, tuple[str, int]]] = asyncio.get_running_loop().create_future()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.set_result((await reader.read(1_000), writer.get_extra_info("peername")[:2]))
        writer.write(CONNACK)
        await reader.read(1_000)
        writer.write(PUBACK)
        await reader.read(1_000)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        routes = Routes(brokers=(Broker(name="b", host="127.0.0.1", port=port, **broker),))
        router, counters = Router(routes, Shared.alone(), random.Random(0)), Counters()
        ingest = Ingest(NOWHERE, router, counters, client_id="http", timeout_s=5.0, in_flight_max=8, sources=sources)
        ingest.start()
        try:
            await ingest.publish(b"telemetry/d", b"{}", ClassTally(None))
            return await heard
        finally:
            await ingest.stop()


@pytest.mark.parametrize("source", ["", "127.0.0.9"])
def test_a_broker_that_wants_to_know_its_clients_hears_of_the_gateway(source: str) -> None:
    sources = Sources([source] if source else [])
    said, address = asyncio.run(first_heard(sources, proxy_protocol=True))
    header = ProxyHeader()
    assert header.receive(said)[:1] == b"\x10", "CONNECT comes behind the header"
    assert header.describe(Peer(address=("", 0))).address == address
    assert address[0] == (source or "127.0.0.1")


def test_any_other_broker_hears_connect_first() -> None:
    said, _ = asyncio.run(first_heard(Sources()))
    assert said[:1] == b"\x10"


@pytest.mark.parametrize("size", [0, 100, 126, 4_000, 16_400, 65_536])
def test_a_reading_costs_what_its_publish_costs(size: int) -> None:
    body = 2 + len(b"telemetry/d") + 2 + size
    length_bytes = 1 + (body >= 128) + (body >= 16_384)
    assert packet_bytes(b"telemetry/d", bytes(size)) == 1 + length_bytes + body
