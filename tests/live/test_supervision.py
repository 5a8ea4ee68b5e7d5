"""``tidegate up`` and its servers: one that is killed comes back by itself, is named, and readings flow as before."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.log import Log
from support.processes import RATE_FLEET
from support.waiting import until

from tidegate.brokers.nats.embedded import EmbeddedBrokers
from tidegate.brokers.settings import BrokerSettings
from tidegate.controller.sensors import Sensors
from tidegate.devices.acknowledgements import read_directory
from tidegate.local.chain import Chain
from tidegate.pipeline.tables.ledger import check, read_identities
from tidegate.settings.tree import Settings

pytestmark = [pytest.mark.live, pytest.mark.timeout(240)]
QUICK = {"TIDEGATE_NODE__TRIGGER_MS": "100", "TIDEGATE_NODE__LEASE_S": "2"}
WATCH_S_MAX = 12.0  # a busy machine, and requests that wait for a server that is just starting


class Site:
    """A chain that is watched as ``tidegate up`` does, and what it said."""

    def __init__(self, state: Path) -> None:
        self.said: list[str] = []
        self.acks = state / "acks"
        self.chain = Chain(state, Settings(), self.said.append, nodes=1, environment=QUICK, logs=True)

    @property
    def servers(self) -> EmbeddedBrokers:
        assert isinstance(self.chain.brokers, EmbeddedBrokers)
        return self.chain.brokers

    def watch_until(self, condition: Callable[[], object], timeout_s: float = 60.0) -> None:
        def holds() -> object:
            began_s = time.monotonic()
            self.chain.watch()
            assert time.monotonic() - began_s < WATCH_S_MAX
            return condition()

        until(holds, timeout_s, every_s=0.3)

    def readings_arrive(self, name: str) -> None:
        """Twenty devices for two seconds, and every acknowledged reading of it in the tables, once."""
        fleet = [*RATE_FLEET, "--state", str(self.chain.state), "--acks", str(self.acks / name)]
        subprocess.run([*fleet, "--devices", "20", "--rate", "200", "--seconds", "2"], check=True, timeout=90)
        tables = Path(self.chain.installation.tables)
        self.watch_until(lambda: not check(read_directory(self.acks), read_identities(tables)).lost, 90)
        verdict = check(read_directory(self.acks), read_identities(tables))
        assert (verdict.lost, verdict.duplicated) == (0, 0)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    running = Site(tmp_path_factory.mktemp("supervised"))
    with running.chain as chain:
        chain.start_brokers()
        chain.start_parts()
        for _ in chain.ready():
            pass
        yield running


@pytest.mark.parametrize("name", ["broker-1", "control"])
def test_a_killed_server_comes_back_is_named_and_readings_flow(site: Site, name: str) -> None:
    site.readings_arrive(f"before-{name}")
    site.said.clear()
    before = site.servers.pids()
    if name == "control":
        site.servers.kill_control()
    else:
        site.servers.kill_broker(0)
    site.watch_until(lambda: len(site.servers.pids()) == len(before))
    assert site.servers.pids() != before
    site.readings_arrive(f"after-{name}")
    site.watch_until(lambda: "The alarm is over." in site.said, 60)
    told = [line for line in site.said if line.startswith("ALARM: ")]
    assert any(f"The server {name} has ended, and it is started again: SIGKILL ended it" in line for line in told)
    assert any("1 time(s) so far" in line for line in told)
    assert not any("2 time(s)" in line for line in told), "once is enough"


def test_a_paused_server_is_named_and_left_alone(site: Site) -> None:
    site.watch_until(lambda: True)
    site.said.clear()
    pid = site.servers.pids()[-1]
    os.kill(pid, signal.SIGSTOP)
    try:
        site.watch_until(lambda: any(f"end process {pid}" in line for line in site.said))
        assert any("ALARM: The server control runs, but its health page does not answer" in line for line in site.said)
    finally:
        os.kill(pid, signal.SIGCONT)
    sensors = Sensors(site.chain.installation, name="test")
    site.watch_until(lambda: any("The server control runs, but" in one for one in sensors.observe(()).alarms))
    site.watch_until(lambda: "The alarm is over." in site.said)
    assert not any("The server control" in one for one in sensors.observe(()).alarms)
    sensors.close()
    assert site.servers.pids()[-1] == pid


def test_a_cluster_that_was_killed_whole_takes_readings_again(tmp_path: Path) -> None:
    with EmbeddedBrokers(tmp_path, BrokerSettings(nodes=3, slices=2)) as brokers:
        brokers.kill_all()
        alarms: set[str] = set()

        def is_well() -> bool:
            now = brokers.supervise()
            alarms.update(now)
            return len(brokers.pids()) == 4 and not now

        until(is_well, 90, every_s=0.3)
        for number in (1, 2, 3):
            assert any(alarm.startswith(f"The server broker-{number} has ended") for alarm in alarms)
        here = brokers.installation
        assert here is not None
        fleet = [*RATE_FLEET, "--state", str(tmp_path), "--acks", str(tmp_path / "acks")]
        subprocess.run([*fleet, "--devices", "20", "--rate", "50", "--seconds", "1"], check=True, timeout=60)
        with Log(here) as log:
            until(lambda: log.count() >= 50, 60)


def test_a_server_that_ends_at_once_keeps_its_alarm_with_its_last_words(tmp_path: Path) -> None:
    with EmbeddedBrokers(tmp_path, BrokerSettings(nodes=1, slices=1)) as brokers:
        (tmp_path / "control" / "nats.conf").write_text("no: [such, configuration")
        brokers.kill_control()
        until(lambda: any("2 time(s) so far" in alarm for alarm in brokers.supervise()), 30, every_s=0.2)
        (alarm,) = [alarm for alarm in brokers.supervise() if alarm.startswith("The server control")]
        assert str(tmp_path / "control.log") in alarm
        assert "Parse error on line 1" in alarm
