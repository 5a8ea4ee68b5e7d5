"""The publisher and the fleet against real brokers that die in mid-stream."""

import asyncio
import json
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.acks import identities
from support.log import Log
from support.processes import RATE_FLEET
from support.waiting import until

from tidegate.brokers.nats.embedded import EmbeddedBrokers
from tidegate.brokers.settings import BrokerSettings
from tidegate.bus.installation import load_installation
from tidegate.devices.acknowledgements import SUFFIX, AckFile, read_directory, read_file
from tidegate.devices.publisher_settings import PublisherSettings
from tidegate.model.readings import Reading
from tidegate_bench.rig.load_publisher import LoadPublisher

pytestmark = pytest.mark.live


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[EmbeddedBrokers]:
    """To be killed."""
    with EmbeddedBrokers(tmp_path / "state", BrokerSettings(nodes=1, slices=2)) as running:
        yield running


def fleet(state: Path, acks: Path, *arguments: str) -> subprocess.Popen[bytes]:
    command = [*RATE_FLEET, "--state", str(state), "--acks", str(acks), "--json", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def logged(log: Log) -> set[tuple[str, int, int]]:
    """The identities in the log, whichever slice and however often."""
    return {(device, reading["boot"], reading["seq"]) for device, reading in log.readings()}


def test_a_killed_broker_costs_no_reading(brokers: EmbeddedBrokers, tmp_path: Path) -> None:
    installation = load_installation(tmp_path / "state")
    count = 3_000

    async def disturb() -> None:
        await asyncio.sleep(0.3)
        brokers.kill_broker(0)
        await asyncio.sleep(0.3)
        brokers.start_broker(0, wait=False)

    async def run(file: AckFile) -> LoadPublisher:
        async with LoadPublisher(
            client_id="p",
            addresses=installation.mqtt_addresses,
            user=installation.mqtt_user,
            password=installation.mqtt_password,
            acknowledgements=file,
            settings=PublisherSettings(backoff_s_max=0.5),
            jitter=random.Random(1),
        ) as publisher:
            disturbance = asyncio.create_task(disturb())
            for seq in range(count):
                await publisher.publish(f"d{seq % 5}", Reading(value=1.0, boot=1, seq=seq, time=time.time()))
                if seq % 10 == 0:
                    await asyncio.sleep(0.003)
            await disturbance
            assert await publisher.drain(30), publisher.last_failure
            return publisher

    with Log(installation) as log, AckFile(tmp_path / f"a{SUFFIX}") as file:
        log.open_for_traffic()
        counters = asyncio.run(run(file)).counters
        log.open_for_traffic()
        sent = {(f"d{seq % 5}", 1, seq) for seq in range(count)}
        until(lambda: log.count() >= count, 60)
        until(lambda: logged(log) == sent, 60, every_s=0.5)
    assert (counters.sent, counters.acked) == (count, count)
    assert counters.reconnects >= 1
    acknowledged = identities(read_file(tmp_path / f"a{SUFFIX}"))
    assert acknowledged == Counter(dict.fromkeys(sent, 1))


def test_a_fleet_ends_with_its_summary(state: Path, tmp_path: Path) -> None:
    acks = tmp_path / "acks"
    with fleet(state, acks, "--rate", "1000", "--seconds", "1", "--devices", "20") as process:
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    summary = json.loads(output)
    assert (summary["sent"], summary["acked"], summary["reconnects"]) == (1_000, 1_000, 0)
    assert identities(read_directory(acks)) == Counter(
        {(f"device-{position % 20:06d}", 0, position // 20): 1 for position in range(1_000)}
    )


def test_a_fleet_without_a_broker_says_what_is_missing(brokers: EmbeddedBrokers, tmp_path: Path) -> None:
    brokers.kill_broker(0)
    arguments = ("--count", "5", "--devices", "1", "--connections", "1", "--drain-s", "0.5")
    with fleet(tmp_path / "state", tmp_path / "acks", *arguments) as process:
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 3
    assert json.loads(output)["acked"] == 0
    assert b"5 readings are not acknowledged. Broker 127.0.0.1:" in errors


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGKILL, -signal.SIGKILL)])
def test_a_stopped_fleet_leaves_its_acknowledgements(
    state: Path, tmp_path: Path, number: signal.Signals, status: int
) -> None:
    acks = tmp_path / "acks"
    with fleet(state, acks, "--rate", "500", "--seconds", "60") as process:
        until(lambda: any(path.stat().st_size > 2_000 for path in acks.glob(f"*{SUFFIX}")), 30)
        process.send_signal(number)
        output, errors = process.communicate(timeout=30)
    assert process.returncode == status, errors
    acknowledged = identities(read_directory(acks))
    assert len(acknowledged) > 50
    assert set(acknowledged.values()) == {1}
    if number == signal.SIGTERM:
        summary = json.loads(output)
        assert summary["sent"] == summary["acked"] == len(acknowledged)
