"""The benchmarks of the gateway: their arithmetic on figures to check by hand, and their loads against a small peer."""

import asyncio
import contextlib
import os
import select
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvloop

from tidegate.machine.ports import free_port
from tidegate.model.errors import TidegateError, UserError
from tidegate.mqtt.client import encode_connect
from tidegate_bench.gateway import checks as gateway_checks
from tidegate_bench.gateway import ledger
from tidegate_bench.gateway import load as mqtt_load
from tidegate_bench.gateway.checks import BATCHES, DIRECT, FORWARDER, HAPROXY, OURS, SENDS, TLS, added_ratio
from tidegate_bench.gateway.pooling import pooled
from tidegate_bench.gateway.run import turns
from tidegate_bench.gateway.stand import SAMPLES, StandBroker, Way
from tidegate_bench.rig import clients as mqtt_clients
from tidegate_bench.rig import forwarder, processes
from tidegate_bench.rig.programs import installed
from tidegate_bench.storm.clients import Storm

# -- from rows to checks


def repetition(number: int, **changes: float) -> list[dict[str, Any]]:
    """One in which we cost and add as much as HAProxy and the forwarder do; each is as slow as its number says."""
    found = {"cpu": 10.0, "forwarder": 10.0, "ack": 3.0, "rate": 1e6, "tls": 30.0} | changes
    slow = number + 1.0
    ways = {
        DIRECT: (0.0, 1.0, 1.5e6),
        HAPROXY: (10.0, 3.0, 1e6),
        FORWARDER: (found["forwarder"], 3.0, 1e6),
        OURS: (found["cpu"], found["ack"], found["rate"]),
    }
    rows: list[dict[str, Any]] = []
    for through, (cpu_us, ack_ms, rate_per_s) in ways.items():
        whose = {"repetition": number, "through": through}
        sends = {"cpu_us_per_message": cpu_us * slow, "ack_ms_p99": ack_ms * slow, SAMPLES: [ack_ms * slow] * 100}
        rows.append({"part": SENDS, **whose, **sends})
        rows.append({"part": BATCHES, **whose, "messages_per_s": rate_per_s / slow})
        if through in (HAPROXY, OURS):
            tls_us = found["tls"] if through == OURS else 30.0
            rows.append({"part": TLS, **whose, "cpu_us_per_message": tls_us * slow})
    return rows


def repetitions(*changes: dict[str, float]) -> list[dict[str, Any]]:
    return pooled([row for number, each in enumerate(changes) for row in repetition(number, **each)], seed=1)


@pytest.mark.parametrize(
    ("changes", "name", "value", "holds"),
    [
        pytest.param({"cpu": 12.0, "forwarder": 12.0}, "cpu_per_message_vs_haproxy", 1.2, True, id="a fifth more"),
        pytest.param({"cpu": 12.1, "forwarder": 12.0}, "cpu_per_message_vs_haproxy", 1.21, False, id="no more"),
        pytest.param({"cpu": 11.2}, "cpu_vs_forwarder", 1.12, True, id="an eighth above bare forwarding may be"),
        pytest.param({"cpu": 11.3}, "cpu_vs_forwarder", 1.13, False, id="more than that may not"),
        pytest.param({"ack": 4.0}, "added_p99_vs_haproxy", 1.5, True, id="half more than HAProxy adds may be"),
        pytest.param({"ack": 4.1}, "added_p99_vs_haproxy", 1.55, False, id="more than half may not"),
        pytest.param({"ack": 0.5}, "added_p99_vs_haproxy", 0.0, True, id="faster than direct counts as nothing added"),
        pytest.param({"rate": 7.5e5}, "batched_vs_haproxy", 0.75, True, id="three quarters of the batches may be"),
        pytest.param({"rate": 7.4e5}, "batched_vs_haproxy", 0.74, False, id="less may not"),
        pytest.param({"tls": 43.5}, "tls_cpu_vs_haproxy", 1.45, True, id="TLS may cost more"),
        pytest.param({"tls": 43.8}, "tls_cpu_vs_haproxy", 1.46, False, id="but not any more"),
    ],
)
def test_each_check_has_its_bar(changes: dict[str, float], name: str, value: float, holds: bool) -> None:
    found = {check.name: check for check in gateway_checks.checks(repetitions(*[changes] * 5))}
    assert (found[name].value, found[name].holds) == (value, holds)
    assert all(check.holds for check in found.values() if check.name != name)


def test_ratios_are_taken_within_a_repetition_and_their_median_counts() -> None:
    rows = repetitions(*({"cpu": cpu} for cpu in (11.0, 90.0, 10.5, 11.5, 80.0)))
    rows += [{"part": "machine", "processors": 2}, {"part": "idle", "through": OURS, "kib_per_connection": 9.0}]
    check = gateway_checks.checks(rows)[0]
    assert (check.name, check.value, check.holds) == ("cpu_per_message_vs_haproxy", 1.15, True)
    spread = gateway_checks.spreads(rows)[0]
    assert (spread["lowest"], spread["median"], spread["highest"]) == (1.05, 1.15, 9.0)


def test_what_is_added_is_that_of_all_probes_together() -> None:
    """One repetition in which the machine stopped for a moment has a percentile of its own, and little weight."""
    calm = [1.0] * 1_000
    hiccup = [*[1.0] * 985, *[200.0] * 15]
    rows = [
        {"part": SENDS, "repetition": number, "through": way, SAMPLES: [added + took for took in samples]}
        for way, added in ((DIRECT, 0.0), (HAPROXY, 1.0), (OURS, 1.2))
        for number, samples in enumerate([calm] * 9 + [hiccup if way == OURS else calm])
    ]
    found = pooled(rows, seed=1)
    assert all(SAMPLES not in row for row in found)
    assert {row["through"]: row["ack_ms_p99"] for row in found if row["part"] == "all probes"} == {
        DIRECT: 1.0,
        HAPROXY: 2.0,
        OURS: 2.2,
    }
    assert [(row["lowest"], row["value"], row["highest"] >= 1.2) for row in found if row["part"] == "interval"] == [
        (1.2, 1.2, True)
    ]


def test_the_interval_is_wide_where_repetitions_disagree_and_the_same_from_the_same_seed() -> None:
    def interval(*acks: float) -> tuple[float, float]:
        rows = pooled([row for ack in acks for row in repetition(0, ack=ack)], seed=3)
        return next((row["lowest"], row["highest"]) for row in rows if row["part"] == "interval")

    assert interval(*[3.0] * 10) == (1.0, 1.0)
    lowest, highest = interval(*[3.0, 5.0] * 5)
    assert (lowest, highest) == (2.0, 2.0)  # half of the probes are slower than any 99th percentile cares about
    lowest, highest = interval(*[3.0] * 9, 5.0)
    assert (lowest, highest) == (1.0, 2.0)
    assert interval(*[3.0] * 9, 5.0) == (lowest, highest)


@pytest.mark.parametrize(
    ("direct", "haproxy", "ours", "ratio"),
    [
        pytest.param(1.0, 1.5, 1.25, 0.5, id="half of what HAProxy adds"),
        pytest.param(1.0, 1.0, 1.1, 2.0, id="HAProxy adds nothing: it is taken to add what cannot be told apart"),
        pytest.param(1.0, 0.8, 1.1, 2.0, id="nor less than nothing"),
    ],
)
def test_a_denominator_near_zero_is_guarded(direct: float, haproxy: float, ours: float, ratio: float) -> None:
    assert added_ratio(direct, haproxy, ours) == pytest.approx(ratio)


def test_every_way_has_its_turn_in_every_repetition_and_goes_first_as_often() -> None:
    broker = StandBroker(pid=1, address=("127.0.0.1", 1883), state=Path())
    order = [(number, way.through) for number, way in turns([Way(through=n, broker=broker) for n in "abc"], 6)]
    assert len(set(order)) == len(order) == 18
    assert Counter(name for _, name in order[::3]) == {"a": 2, "b": 2, "c": 2}


def test_a_program_that_is_missing_is_named_with_the_remedy() -> None:
    with pytest.raises(UserError, match=r"^The program nonesuch is not installed: .*'apt-get install nonesuch'\.$"):
        installed("nonesuch")


# -- the loads


def as_anybody(_: str) -> tuple[str, str]:
    return "u", "p"


class Peer:
    """Accepts every client and acknowledges QoS 1; notes how much came, and with how many packets per receive."""

    def __init__(self, refusals: int = 0) -> None:
        self.packets = Counter[int]()
        self.most_per_receive = 0
        self.connections: list[socket.socket] = []
        self._refusals = refusals
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.address: tuple[str, int] = self._listener.getsockname()
        self._ended, self._wakes = socket.socketpair()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def close(self) -> None:
        self._wakes.close()
        self._thread.join()
        for opened in (*self.connections, self._listener, self._ended):
            opened.close()

    def _serve(self) -> None:
        pending: dict[socket.socket, bytes] = {}
        while True:
            ready = select.select([self._ended, self._listener, *pending], [], [])[0]
            for found in ready:
                if found is self._ended:
                    return
                if found is self._listener:
                    accepted = self._listener.accept()[0]
                    pending[accepted] = b""
                    self.connections.append(accepted)
                elif not self._receive(found, pending):
                    del pending[found]

    def _receive(self, found: socket.socket, pending: dict[socket.socket, bytes]) -> bool:
        try:
            received = found.recv(65_536)
        except ConnectionResetError:
            received = b""
        data, packets = pending[found] + received, 0
        while len(data) >= 2 and len(data) >= (end := 2 + data[1]):  # none is so long that its length takes two bytes
            self._take(found, data[0], data[2:end])
            data, packets = data[end:], packets + 1
        self.most_per_receive = max(self.most_per_receive, packets)
        pending[found] = data
        return bool(received)

    def _take(self, found: socket.socket, first: int, body: bytes) -> None:
        self.packets[first] += 1
        if first == 0x10:
            self._refusals -= 1
            found.send(b"\x20\x02\x00\x03" if self._refusals >= 0 else b"\x20\x02\x00\x00")
        elif first == 0x32:
            after_topic = 2 + int.from_bytes(body[:2], "big")
            found.send(b"\x40\x02" + body[after_topic : after_topic + 2])


@contextlib.contextmanager
def peer(refusals: int = 0) -> Iterator[Peer]:
    running = Peer(refusals)
    try:
        yield running
    finally:
        running.close()


@contextlib.contextmanager
def clients(address: tuple[str, int], count: int) -> Iterator[list[mqtt_clients.LoadClient]]:
    opened = mqtt_clients.open_clients(
        address, count, name="test", credentials=as_anybody, payload=mqtt_load.PAYLOAD, send_buffer_bytes=16_384
    )
    try:
        yield opened
    finally:
        for client in opened:
            client.socket.close()


def test_a_paced_load_sends_what_it_was_asked_for_in_its_time() -> None:
    with peer() as taking, clients(taking.address, 3) as connected:
        said = mqtt_load.paced(connected, 0.2, 1_000.0, 1)
    assert said["messages"] == 203
    assert 0.2 <= said["sending_s"] < 0.5
    assert taking.packets == {0x10: 3, 0x30: 200, 0x32: 3}


def test_a_batched_load_has_arrived_when_it_says_so() -> None:
    with peer() as taking, clients(taking.address, 2) as connected:
        said = mqtt_load.batched(connected, 0.1, 0.0, 1)
        assert taking.packets[0x30] + taking.packets[0x32] == said["messages"]
    assert taking.most_per_receive >= mqtt_load.BATCH / 2


def test_probes_are_spread_by_their_seed_and_each_is_timed() -> None:
    with peer() as taking, clients(taking.address, 2) as connected:
        said = mqtt_load.probe(connected, 0.1, 200.0, 1)
    assert (said["messages"], said["unanswered"], len(said["took_ms"])) == (20, 0, 20)
    assert all(0.0 < took_ms < 1_000.0 for took_ms in said["took_ms"])
    assert taking.packets[0x32] == 20


def test_the_forwarder_hands_on_all_bytes_and_ends_with_its_parent() -> None:
    sent = bytes(range(256)) * 20_000  # more than the buffers of both connections hold

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
        writer.close()

    async def through(port: int) -> bytes:
        reading, writing = os.pipe()
        async with await asyncio.start_server(echo, "127.0.0.1", 0) as behind:
            forwarding = asyncio.create_task(forwarder.serve(port, behind.sockets[0].getsockname(), reading))
            await asyncio.sleep(0.05)
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(sent)
            received = await reader.readexactly(len(sent))
            writer.close()
            await writer.wait_closed()
            os.close(writing)
            await asyncio.wait_for(forwarding, 5)
            os.close(reading)
        return received

    assert uvloop.run(through(free_port(set()))) == sent


def test_processor_time_is_told_apart_by_who_spent_it() -> None:
    before = processes.processor_time(os.getpid())
    sum(range(20_000_000))
    after = processes.processor_time(os.getpid())
    assert after.user_s - before.user_s > 10 * (after.system_s - before.system_s)
    assert processes.cpu_s(os.getpid()) >= sum(after)


def test_processes_of_one_family_are_counted_once() -> None:
    own = os.getpid()
    assert [member.pid for member in processes.families([own, own])].count(own) == 1
    assert processes.open_files_of([own, own]) == processes.open_files_of([own])


def test_a_load_that_is_refused_says_so() -> None:
    with peer(refusals=1) as taking, pytest.raises(TidegateError, match="does not accept the load's clients"):
        mqtt_clients.open_clients(taking.address, 1, name="test", credentials=as_anybody)


def until_all(storming: Storm, count: int) -> None:
    for _ in range(1_000):
        storming.turn()
        if storming.connected == count:
            return
    pytest.fail("not all clients are connected")


def test_a_storm_tries_again_at_once_whether_refused_or_cut_off() -> None:
    connects = [encode_connect(f"c{number}") for number in range(10)]
    with peer(refusals=7) as taking:
        storming = Storm(taking.address, connects)
        until_all(storming, 10)
        assert storming.counts == {"attempts": 17, "refused": 7, "unanswered": 0, "lost": 0}
        for accepted in taking.connections:
            with contextlib.suppress(OSError):
                accepted.shutdown(socket.SHUT_RDWR)
        while storming.counts["lost"] < 10:
            storming.turn()
        until_all(storming, 10)
        assert storming.counts["attempts"] == 27
        assert len(storming.accepted_s) == 20
        storming.close()


def test_a_peak_is_remembered_after_it_is_over() -> None:
    own = os.getpid()
    processes.forget_peak(own)
    before = processes.rss_bytes(own)
    block = bytearray(b"x" * 40_000_000)
    del block
    assert processes.peak_rss_bytes(own) - before > 30_000_000


def test_the_ledger_costs_what_it_costs_within_a_repetition() -> None:
    costs = {"on": (10.4, 30.0, 21.0), "off": (10.0, 20.0, 20.0)}
    rows = [
        {"repetition": number, "ledger": name, "cpu_us_per_message": cost}
        for name, each in costs.items()
        for number, cost in enumerate(each)
    ]
    assert ledger.ratios(rows) == [1.04, 1.5, 1.05]
    assert ledger.check(rows).value == 1.05
    assert ledger.check(rows).holds
