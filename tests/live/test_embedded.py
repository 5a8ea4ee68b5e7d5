"""The embedded brokers, alive: start, restart, refusals, permissions, log, backlog, disk guard and crashes."""

import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from paho.mqtt import client as paho
from support.clients import Client, connected
from support.log import Log
from support.processes import is_running
from support.waiting import until

from tidegate.brokers.nats.backlog import measure
from tidegate.brokers.nats.disk_guard import NatsDiskGuard
from tidegate.brokers.nats.embedded import EmbeddedBrokers
from tidegate.brokers.nats.purging import purge_committed
from tidegate.brokers.settings import BrokerSettings
from tidegate.bus.installation import load_installation
from tidegate.bus.jetstream import ask
from tidegate.model.errors import SequenceGapError, UserError
from tidegate.model.installation import Installation

pytestmark = pytest.mark.live
SLICES = 4


class Running:
    """One installation that is open for traffic."""

    def __init__(self, brokers: EmbeddedBrokers) -> None:
        self.brokers = brokers
        self.here: Installation = brokers.start()
        self.log = Log(self.here)
        self.wire = self.log.wire
        self.log.open_for_traffic()

    def __enter__(self) -> "Running":
        return self

    def __exit__(self, *_: object) -> None:
        self.log.close()

    def stored(self) -> list[str]:
        """Every payload in every slice, copies included."""
        return [payload.decode() for _, payload in self.log.messages()]

    def settled(self, count: int) -> None:
        until(lambda: self.log.count() >= count)


def publish(client: Client, topic: str, payload: str) -> paho.MQTTMessageInfo:
    return client.publish(topic, payload, qos=1)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    settings = BrokerSettings(slices=SLICES)
    with EmbeddedBrokers(tmp_path_factory.mktemp("one"), settings) as brokers, Running(brokers) as one:
        yield one


def test_one_node_is_ready_within_a_second_and_keeps_its_data_and_ports(tmp_path: Path) -> None:
    settings = BrokerSettings(slices=2)
    begun = time.monotonic()
    with EmbeddedBrokers(tmp_path, settings) as brokers:
        assert time.monotonic() - begun < 1.0
        before = Running(brokers)
        with connected(before.here, "d") as device:
            publish(device, "telemetry/d", "kept").wait_for_publish(5)
        before.settled(1)
        before.wire.close()
        assert load_installation(tmp_path) == before.here
    with pytest.raises(UserError, match="No running installation"):
        load_installation(tmp_path)
    with EmbeddedBrokers(tmp_path, settings) as brokers:
        after = Running(brokers)
        assert after.here == before.here
        assert after.stored() == ["kept"]
        after.wire.close()


def test_secrets_are_readable_by_their_owner_only(running: Running, tmp_path: Path) -> None:
    with EmbeddedBrokers(tmp_path / "state", BrokerSettings()) as brokers:
        ours = [tmp_path / "state", *(tmp_path / "state").glob("*"), *(tmp_path / "state").glob("*/nats.conf")]
        for path in ours:
            assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
        assert brokers.installation is not None
        assert brokers.installation.mqtt_password != running.here.mqtt_password


def test_a_port_in_use_is_named_before_anything_starts(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        brokers = EmbeddedBrokers(tmp_path, BrokerSettings(mqtt_ports=(port,)))
        with pytest.raises(UserError, match=f"MQTT port {port} on 127.0.0.1 is in use: .* mqtt_ports"):
            brokers.start()
    assert brokers.pids() == ()
    assert not list(tmp_path.glob("*.log"))


def test_a_second_start_on_the_same_directory_and_other_slices_are_refused(tmp_path: Path) -> None:
    settings = BrokerSettings(slices=2)
    with EmbeddedBrokers(tmp_path, settings), pytest.raises(UserError, match="Another Tidegate runs in"):
        EmbeddedBrokers(tmp_path, settings).start()
    with pytest.raises(UserError, match="slices: 2, and 3 is asked for"):
        EmbeddedBrokers(tmp_path, BrokerSettings(slices=3)).start()


def test_the_servers_die_with_their_parent(tmp_path: Path) -> None:
    program = (
        "import sys, threading, time; from pathlib import Path\n"
        "from tidegate.brokers.nats.embedded import EmbeddedBrokers\n"
        "from tidegate.brokers.settings import BrokerSettings\n"
        "brokers = EmbeddedBrokers(Path(sys.argv[1]), BrokerSettings())\n"
        # A thread that starts them and ends: the servers must outlive it.
        "starter = threading.Thread(target=brokers.start); starter.start(); starter.join(); time.sleep(0.2)\n"
        "print(*brokers.pids(), flush=True); time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        pids = [int(word) for word in parent.stdout.readline().split()]
        assert len(pids) == 2
        os.kill(pids[0], signal.SIGSTOP)  # a paused one must die too
        parent.kill()
    until(lambda: not any(is_running(pid) for pid in pids), 5.0)


def test_ordinary_subscribers_are_undisturbed_and_sessions_persist(running: Running) -> None:
    before = running.log.count()
    with connected(running.here, "live") as live, connected(running.here, "source") as source:
        assert live.subscribed(("telemetry/#", 0)) == [0]
        with connected(running.here, "kept", clean=False) as kept:
            assert kept.subscribed(("telemetry/#", 1)) == [1]
            for number in range(20):
                publish(source, f"telemetry/s{number}", f"a{number}").wait_for_publish(5)
            until(lambda: len(kept.heard) == 20)
        for number in range(20):
            publish(source, f"telemetry/s{number}/deep/er", f"b{number}").wait_for_publish(5)
        with connected(running.here, "kept", clean=False) as again:
            # What the broker wrote to the session that was just leaving comes again only after its ack wait of 30 s.
            until(lambda: len(live.heard) == 40 and len({*kept.heard, *again.heard}) == 40, 60.0)
            again.unsubscribe("telemetry/#")
        running.settled(before + 40)
        assert running.log.count() == before + 40


@pytest.mark.parametrize(
    "topic", ["$JS/API/STREAM/DELETE/INGEST", "tg/0/telemetry/x", "$MQTT/msgs/telemetry/x", "$KV/a/b"]
)
def test_devices_reach_neither_the_log_nor_the_slices(running: Running, topic: str) -> None:
    before = running.log.ends()
    with connected(running.here, "forger") as forger:
        forger.publish(topic, "{}", qos=1)
        forger.publish(topic, "{}", qos=0)
        assert forger.subscribed((topic.split("/", 1)[0] + "/#", 1)) == [128]
    time.sleep(0.2)
    assert running.log.ends() == before
    assert ask(running.wire, "STREAM.INFO.INGEST")["config"]["retention"] == "workqueue"


def test_backlog_counts_what_waits_and_dates_its_head(running: Running) -> None:
    begin = running.log.ends()
    empty = measure(running.wire, SLICES, begin)
    assert (empty.waiting, empty.head_age_s, empty.alarms) == (0, 0.0, ())
    sent_at = time.time()
    with connected(running.here, "counter") as device:
        for number in range(30):
            publish(device, "telemetry/one-device", str(number)).wait_for_publish(5)
    running.settled(sum(begin.values()) + 30)
    time.sleep(1.0)
    full = measure(running.wire, SLICES, begin, now_s=sent_at + 3600)
    assert (full.waiting, full.upstream_waiting, full.alarms) == (30, 0, ())
    (loaded,) = [one for one in full.slices if one.waiting]
    assert loaded.waiting == 30
    assert 1.0 < loaded.head_age_s < 30, "by the broker's clock: that of whoever asks is an hour ahead"
    (alarm,) = measure(running.wire, SLICES, {**begin, loaded.slice: loaded.last_sequence + 1}).contradictions
    assert "is committed" in alarm


def test_purge_stays_below_the_committed_message(running: Running) -> None:
    with connected(running.here, "filler") as device:
        for number in range(40):
            publish(device, f"telemetry/p{number}", str(number)).wait_for_publish(5)
    time.sleep(0.3)
    ends = running.log.ends()
    committed = {number: end - 2 for number, end in ends.items()}
    purge_committed(running.wire, committed)
    for number in ends:
        state = running.log.state(number)
        assert (state["first_seq"], state["last_seq"]) == (committed[number], ends[number])
    assert purge_committed(running.wire, committed) == dict.fromkeys(ends, 0)
    with pytest.raises(SequenceGapError, match="nothing was deleted"):
        purge_committed(running.wire, {0: ends[0] + 1})
    assert running.log.ends() == ends


def test_a_full_store_withholds_acks_keeps_what_it_has_and_recovers(running: Running) -> None:
    before = running.log.ends()
    directories = running.brokers.store_directories
    roomy = NatsDiskGuard(running.wire, running.here.monitor_urls, directories, 1 << 30, free_bytes_min=0)
    tight = NatsDiskGuard(running.wire, running.here.monitor_urls, directories, 1024, free_bytes_min=0)
    assert roomy.check().alarm is None
    with connected(running.here, "absent", clean=False) as absent:
        absent.subscribe("telemetry/gate", 1)
        time.sleep(0.2)
    with connected(running.here, "gate", clean=False) as device:
        for number in range(50):
            publish(device, "telemetry/gate", f"early{number}").wait_for_publish(5)
        closed = tight.check()
        assert not closed.is_open
        assert "not acknowledged" in (closed.alarm or "")
        # Paho calls a publish failed that it makes while it is not connected, and sends it later all the same.
        acknowledged: set[int] = set()
        device.on_publish = lambda _c, _u, mid, _r, _p: acknowledged.add(mid)
        late = {publish(device, "telemetry/gate", f"late{number}").mid for number in range(5)}
        time.sleep(1.5)
        assert not late & acknowledged
        # What an absent subscriber is owed is not truncated by the gate.
        assert ask(running.wire, "STREAM.INFO.$MQTT_msgs")["state"]["messages"] >= 50
        assert roomy.check().is_open
        until(lambda: late <= acknowledged)
    running.settled(sum(before.values()) + 55)
    with connected(running.here, "absent", clean=False) as absent:
        until(lambda: len(set(absent.heard)) == 55)
        absent.unsubscribe("telemetry/gate")


def test_a_cluster_loses_no_acknowledged_message_to_kills(tmp_path: Path) -> None:
    acknowledged: set[str] = set()
    numbers: dict[int, str] = {}
    with EmbeddedBrokers(tmp_path, BrokerSettings(nodes=3, slices=SLICES)) as brokers:
        cluster = Running(brokers)
        with connected(cluster.here, "fleet", clean=False) as fleet:
            fleet.on_publish = lambda _c, _u, mid, _r, _p: acknowledged.add(numbers[mid])

            def flow(name: str, seconds: float) -> None:
                deadline, number = time.monotonic() + seconds, 0
                while time.monotonic() < deadline:
                    with fleet._out_message_mutex:
                        info = publish(fleet, f"telemetry/f{number % 31}", f"{name}{number}")
                        numbers[info.mid] = f"{name}{number}"
                    number += 1
                    time.sleep(0.004)

            flow("calm", 0.5)
            brokers.kill_broker(2)
            flow("two-left", 1.5)
            brokers.start_broker(2)
            flow("three-again", 0.5)
            brokers.kill_all()
            flow("none", 0.3)
            brokers.start_all()
            cluster.log.open_for_traffic()
            flow("after", 0.5)
            until(lambda: len(acknowledged) == len(numbers), 30.0)
        until(lambda: set(cluster.stored()) >= acknowledged, 30.0)
        assert len(acknowledged) > 300
        until(lambda: measure(cluster.wire, SLICES, cluster.log.ends()).upstream_waiting == 0)
        cluster.wire.close()
