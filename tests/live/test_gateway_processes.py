"""A gateway of several real processes: one dies, all are replaced, clients move between them, and nothing is lost."""

import contextlib
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.clients import is_closed, received
from support.commands import Started, started
from support.waiting import until

from tidegate.model.installation import Installation
from tidegate.mqtt.client import encode_publish

pytestmark = pytest.mark.live
DRAIN_S = 1.0


def publish(connection: socket.socket, name: str) -> None:
    connection.sendall(encode_publish(b"telemetry/%b" % name.encode(), b"1", packet_id=7))
    assert received(connection, 4) == b"\x40\x02\x00\x07"


@pytest.fixture(scope="module")
def gateway(installation: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    with started(installation, tmp_path_factory.mktemp("state"), "several", drain_s=DRAIN_S) as running:
        yield running


def test_a_process_that_is_killed_is_replaced_and_takes_nothing_along(gateway: Started) -> None:
    with contextlib.ExitStack() as opened:
        clients = {f"d{number}": opened.enter_context(gateway.connect(f"d{number}")) for number in range(50)}
        for name, client in clients.items():
            publish(client, name)
        until(lambda: gateway.state.connections == 50 and gateway.state.acknowledged == 50)
        before = gateway.state
        assert min(process.connections for process in before.processes) >= 5, "both have some of them"
        assert sum(process.publishes for process in before.processes) == before.publishes == 50
        victim = before.processes[0]
        os.kill(victim.pid, signal.SIGKILL)
        lost = [name for name, client in clients.items() if is_closed(client, 0.2)]
        assert len(lost) == victim.connections
        begun = time.monotonic()
        for name in lost:
            clients[name] = opened.enter_context(gateway.connect(name))
        assert time.monotonic() - begun < 5, "they come back before or while another takes its place"
        for name, client in clients.items():
            publish(client, name)
        until(lambda: gateway.state.acknowledged == 100 and gateway.state.connections == 50)
        until(lambda: len(gateway.pids) == 2)
        after = gateway.state
        assert (after.publishes, after.replaced) == (100, 1), "all is counted, and once"
        assert victim.pid not in gateway.pids
    assert f"Process {victim.number} of gateway several is gone: it was ended by SIGKILL." in gateway.said[-1]


def test_a_client_that_comes_again_takes_over_whichever_process_it_meets(gateway: Started) -> None:
    connection = gateway.connect("again")
    for _ in range(10):
        begun = time.monotonic()
        newer = gateway.connect("again")
        assert time.monotonic() - begun < 1.0, "the broker never met both"
        assert is_closed(connection)
        connection.close()
        connection = newer
    publish(connection, "again")
    connection.close()


def test_an_upgrade_turns_nobody_away_and_sends_clients_away_at_a_pace(gateway: Started) -> None:
    before, failures, ends = gateway.state, list[Exception](), threading.Event()

    def keep_coming() -> None:
        while not ends.is_set():
            try:
                gateway.connect("comes").close()
                time.sleep(0.02)
            except Exception as error:
                failures.append(error)

    coming = threading.Thread(target=keep_coming)
    with contextlib.ExitStack() as opened:
        clients = [opened.enter_context(gateway.connect(f"u{number}")) for number in range(20)]
        coming.start()
        gateway.process.send_signal(signal.SIGHUP)
        left_s = list[float]()
        for client in clients:
            client.settimeout(20)
        waiting = [threading.Thread(target=lambda one=client: left_s.append(_until_closed(one))) for client in clients]
        for thread in waiting:
            thread.start()
        for thread in waiting:
            thread.join()
        until(lambda: len(gateway.pids) == 2 and not gateway.pids & {process.pid for process in before.processes})
        ends.set()
        coming.join()
    assert failures == []
    assert max(left_s) - min(left_s) > 0.4 * DRAIN_S, "not all at once"
    after = gateway.state
    assert after.publishes >= before.publishes
    assert after.replaced == before.replaced, "who was told to go did not die"
    assert not any(process.draining for process in after.processes)


def _until_closed(connection: socket.socket) -> float:
    with contextlib.suppress(ConnectionResetError):
        while connection.recv(100):
            pass
    return time.monotonic()


def test_an_instance_that_drains_lets_go_of_its_ports_and_ends(gateway: Started) -> None:
    with gateway.connect("last") as last:
        pids = gateway.pids
        gateway.process.send_signal(signal.SIGUSR1)

        def is_free() -> bool:
            with socket.socket() as other:
                other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                with contextlib.suppress(OSError):
                    other.bind(("127.0.0.1", gateway.port))
                    return True
            return False

        until(is_free)
        assert _until_closed(last) > 0
    assert gateway.process.wait(10) == 0
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_processes_end_with_their_supervisor_however_it_ends(installation: Installation, tmp_path: Path) -> None:
    with started(installation, tmp_path, "orphans", drain_s=DRAIN_S) as gateway:
        pids = gateway.pids
        gateway.process.kill()
        until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids), 5.0)
