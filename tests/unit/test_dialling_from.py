"""Dialling a broker from chosen addresses, on real sockets; and what is said where there are too few of them."""

import asyncio
import errno
import socket
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop

from tidegate.gateway import dialling_from
from tidegate.gateway.dialling_from import Sources, check_sources, connect, ephemeral_ports, ports_sentence
from tidegate.model.errors import UserError
from tidegate.model.routes import Broker

NOT_OURS = "192.0.2.1"  # of documentation: no machine has it
Loop = Callable[[], asyncio.AbstractEventLoop]


class Brokers:
    """A listener that notes who calls."""

    def __init__(self) -> None:
        self.callers: list[str] = []

    async def __aenter__(self) -> "Brokers":
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.broker = Broker(name="b", host="127.0.0.1", port=self._server.sockets[0].getsockname()[1])
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        await self._server.wait_closed()

    async def _accept(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.callers.append(writer.get_extra_info("peername")[0])
        writer.close()

    async def dial(self, sources: Sources, broker: Broker | None = None) -> socket.socket:
        loop, lost = asyncio.get_running_loop(), asyncio.Event()

        class Client(asyncio.Protocol):
            def connection_lost(self, _: Exception | None) -> None:
                lost.set()

        transport, client = await connect(loop, Client, broker or self.broker, sources)
        assert isinstance(client, Client)
        found: socket.socket = transport.get_extra_info("socket")
        self.options = (
            found.getsockopt(socket.IPPROTO_IP, 24),
            found.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY),
        )
        await lost.wait()
        return found


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Callable[[Coroutine[Any, Any, None]], None]:
    def runs(main: Coroutine[Any, Any, None]) -> None:
        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.run(main)

    return runs


Run = Callable[[Coroutine[Any, Any, None]], None]


def test_addresses_are_taken_in_turn_and_ports_are_left_to_the_kernel(run: Run) -> None:
    async def main() -> None:
        async with Brokers() as brokers:
            sources = Sources(["127.0.0.2", "127.0.0.3"])
            for _ in range(4):
                await brokers.dial(sources)
                assert brokers.options == (1, 1)
            assert sorted(brokers.callers) == ["127.0.0.2"] * 2 + ["127.0.0.3"] * 2

    run(main())


def test_without_addresses_the_kernel_chooses(run: Run) -> None:
    async def main() -> None:
        async with Brokers() as brokers:
            await brokers.dial(Sources())
            assert brokers.callers == ["127.0.0.1"]

    run(main())


def test_a_broker_may_be_named(run: Run) -> None:
    async def main() -> None:
        async with Brokers() as brokers:
            named = Broker(name="b", host="localhost", port=brokers.broker.port)
            await brokers.dial(Sources(["127.0.0.2"]), named)
            assert brokers.callers == ["127.0.0.2"]

    run(main())


def test_an_address_without_a_port_left_is_passed_over(run: Run) -> None:
    """One that is not there is refused with the same error."""

    async def main() -> None:
        async with Brokers() as brokers:
            sources = Sources([NOT_OURS, "127.0.0.2"])
            for _ in range(3):
                await brokers.dial(sources)
            assert brokers.callers == ["127.0.0.2"] * 3
            for none_left in ([NOT_OURS], ["::1"]):
                with pytest.raises(OSError, match=r".") as caught:
                    await brokers.dial(Sources(none_left))
                assert caught.value.errno == errno.EADDRNOTAVAIL

    run(main())


def test_a_broker_that_refuses_is_no_matter_of_addresses(run: Run) -> None:
    async def main() -> None:
        async with Brokers() as brokers:
            silent = brokers.broker
        sources = Sources(["127.0.0.2", "127.0.0.3"])
        with pytest.raises(ConnectionRefusedError):
            await brokers.dial(sources, silent)

    run(main())


@pytest.mark.parametrize(
    ("addresses", "sentence"),
    [
        pytest.param([], None, id="none"),
        pytest.param(["127.0.0.2", "127.0.0.3"], None, id="two of this machine"),
        pytest.param(["here"], "names 'here', which is no IP address", id="a name"),
        pytest.param(["127.0.0.2", NOT_OURS], f"names {NOT_OURS}, which is no address of this machine", id="another's"),
        pytest.param(["127.0.0.2", "127.0.0.2"], "names an address twice", id="twice"),
    ],
)
def test_addresses_are_checked_at_start(addresses: list[str], sentence: str | None) -> None:
    if sentence is None:
        check_sources(addresses)
    else:
        with pytest.raises(UserError, match=sentence):
            check_sources(addresses)


@pytest.mark.parametrize(
    ("wanted", "processes", "brokers", "sources", "is_said"),
    [
        pytest.param(9_000, 2, 1, 0, False, id="the defaults"),
        pytest.param(28_232, 1, 1, 0, False, id="exactly as many as there are"),
        pytest.param(28_233, 1, 1, 0, True, id="one more"),
        pytest.param(28_233, 1, 1, 1, True, id="one address is what the kernel has anyway"),
        pytest.param(28_233, 1, 1, 2, False, id="from two addresses"),
        pytest.param(28_233, 1, 2, 0, False, id="to two brokers"),
        pytest.param(15_000, 2, 1, 0, True, id="processes share the ports"),
    ],
)
def test_too_few_ports_are_said(wanted: int, processes: int, brokers: int, sources: int, is_said: bool) -> None:
    said = ports_sentence(wanted, processes, brokers=brokers, sources=sources, ports=28_232)
    assert bool(said) is is_said


def test_the_sentence_has_the_figures_and_the_remedy() -> None:
    assert ports_sentence(100_000, 2, brokers=3, sources=2, ports=28_232) == (
        "connections_max is 100,000 in each of 2 processes, but 28,232 local ports allow 169,392 connections from 2 "
        "local addresses to 3 brokers: name more addresses of this machine in source_addresses, widen the range of "
        "local ports (net.ipv4.ip_local_port_range), or lower connections_max."
    )


def test_the_kernel_is_asked_how_many_ports_there_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    assert 1 <= ephemeral_ports() <= 65_535
    monkeypatch.setattr(dialling_from, "PORT_RANGE", tmp_path / "missing")
    assert ephemeral_ports() == dialling_from.PORTS_ELSEWHERE
    (tmp_path / "range").write_text("40000\t40099\n")
    monkeypatch.setattr(dialling_from, "PORT_RANGE", tmp_path / "range")
    assert ephemeral_ports() == 100
