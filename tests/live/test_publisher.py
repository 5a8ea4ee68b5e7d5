"""The publisher and the fleet against real brokers that die in mid-stream."""

import asyncio
import base64
import json
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidegate.brokers.nats.embedded import EmbeddedBrokers
from tidegate.brokers.nats.ingest import last_sequences, open_for_traffic, slice_stream
from tidegate.brokers.settings import BrokerSettings
from tidegate.bus.jetstream import ask_all
from tidegate.bus.wire import Wire
from tidegate.devices.acknowledgements import SUFFIX, AckFile, read_directory, read_file
from tidegate.devices.publisher_settings import PublisherSettings
from tidegate.model.installation import Installation
from tidegate.model.readings import Reading
from tidegate_bench.rig.load_publisher import LoadPublisher

pytestmark = pytest.mark.live


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[EmbeddedBrokers]:
    with EmbeddedBrokers(tmp_path / "state", BrokerSettings(nodes=1, slices=2)) as running:
        yield running


def fleet(state: Path, acks: Path, *arguments: str) -> subprocess.Popen[bytes]:
    command = [
        sys.executable,
        "-m",
        "tidegate_bench.rig.steady_load",
        "--state",
        str(state),
        "--acks",
        str(acks),
        "--json",
    ]
    return subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def identities(table) -> Counter[tuple[str, int, int]]:
    return Counter(zip(*(table.column(name).to_pylist() for name in ("device", "boot", "seq")), strict=True))


def logged(wire: Wire, slices: int) -> set[tuple[str, int, int]]:
    """The identities in the log, whichever slice and however often."""
    requests = [
        (f"STREAM.MSG.GET.{slice_stream(number)}", {"seq": sequence})
        for number, last in last_sequences(wire, range(slices)).items()
        for sequence in range(1, last + 1)
    ]
    messages = [
        reply["message"]
        for start in range(0, len(requests), 500)
        for reply in ask_all(wire, requests[start : start + 500])
    ]
    payloads = [json.loads(base64.b64decode(message["data"])) for message in messages]
    return {
        (message["subject"].split(".")[3], payload["boot"], payload["seq"])
        for message, payload in zip(messages, payloads, strict=True)
    }


def test_a_killed_broker_costs_no_reading(brokers: EmbeddedBrokers, tmp_path: Path) -> None:
    installation = Installation.load(tmp_path / "state")
    count = 3_000

    async def disturb() -> None:
        await asyncio.sleep(0.3)
        brokers.kill_node(0)
        await asyncio.sleep(0.3)
        brokers.start_node(0, wait=False)

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

    with Wire(installation.data_urls) as wire, AckFile(tmp_path / f"a{SUFFIX}") as file:
        open_for_traffic(wire, installation)
        counters = asyncio.run(run(file)).counters
        open_for_traffic(wire, installation)
        sent = {(f"d{seq % 5}", 1, seq) for seq in range(count)}
        deadline = time.monotonic() + 60
        while (found := logged(wire, installation.slices)) != sent and time.monotonic() < deadline:
            time.sleep(0.5)
    assert found == sent
    assert (counters.sent, counters.acked) == (count, count)
    assert counters.reconnects >= 1
    acknowledged = identities(read_file(tmp_path / f"a{SUFFIX}"))
    assert acknowledged == Counter(dict.fromkeys(sent, 1))


def test_a_fleet_ends_with_its_summary(brokers: EmbeddedBrokers, tmp_path: Path) -> None:
    acks = tmp_path / "acks"
    with fleet(tmp_path / "state", acks, "--rate", "1000", "--seconds", "1", "--devices", "20") as process:
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    summary = json.loads(output)
    assert (summary["sent"], summary["acked"], summary["reconnects"]) == (1_000, 1_000, 0)
    assert identities(read_directory(acks)) == Counter(
        {(f"device-{position % 20:06d}", 0, position // 20): 1 for position in range(1_000)}
    )


def test_a_fleet_without_a_broker_says_what_is_missing(brokers: EmbeddedBrokers, tmp_path: Path) -> None:
    brokers.kill_node(0)
    arguments = ("--count", "5", "--devices", "1", "--connections", "1", "--drain-s", "0.5")
    with fleet(tmp_path / "state", tmp_path / "acks", *arguments) as process:
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 3
    assert json.loads(output)["acked"] == 0
    assert b"5 readings are not acknowledged. Broker 127.0.0.1:" in errors


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGKILL, -signal.SIGKILL)])
def test_a_stopped_fleet_leaves_its_acknowledgements(
    brokers: EmbeddedBrokers, tmp_path: Path, number: signal.Signals, status: int
) -> None:
    acks = tmp_path / "acks"
    with fleet(tmp_path / "state", acks, "--rate", "500", "--seconds", "60") as process:
        deadline = time.monotonic() + 30
        while not any(path.stat().st_size > 2_000 for path in acks.glob(f"*{SUFFIX}")):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(number)
        output, errors = process.communicate(timeout=30)
    assert process.returncode == status, errors
    acknowledged = identities(read_directory(acks))
    assert len(acknowledged) > 50
    assert set(acknowledged.values()) == {1}
    if number == signal.SIGTERM:
        summary = json.loads(output)
        assert summary["sent"] == summary["acked"] == len(acknowledged)
