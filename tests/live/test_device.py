"""Devices and fleets against a real broker: nothing sampled is lost, and advice is followed while it lives."""

import asyncio
import itertools
import json
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import paho.mqtt.publish
import pytest
from support.acks import identities
from support.log import Log
from support.processes import DEVICE_FLEET
from support.waiting import until, until_async

from tidegate.brokers.nats.embedded import EmbeddedBrokers
from tidegate.brokers.settings import BrokerSettings
from tidegate.devices.acknowledgements import read_directory, read_file
from tidegate.devices.device import Device
from tidegate.devices.publisher_settings import PublisherSettings
from tidegate.model.advice import ADVICE_TOPIC
from tidegate.model.installation import Installation

pytestmark = pytest.mark.live


def device(name: str, installation: Installation, path: Path, **options: Any) -> Device:
    return Device(
        name,
        addresses=installation.device_addresses,
        user=installation.mqtt_user,
        password=installation.mqtt_password,
        acknowledgements=path,
        **options,
    )


def logged(installation: Installation, name: str, after: dict[int, int]) -> list[dict[str, Any]]:
    """What the log holds of a device behind these offsets, in order."""
    with Log(installation) as log:
        mine = [reading for device, reading in log.readings(after) if device == name]
    return sorted(mine, key=lambda each: each["seq"])


async def advise(installation: Installation, interval_s: float, lifetime_s: float) -> None:
    host, port = installation.mqtt_addresses[0]
    await asyncio.to_thread(
        paho.mqtt.publish.single,
        ADVICE_TOPIC,
        json.dumps({"interval_s": interval_s, "lifetime_s": lifetime_s}),
        hostname=host,
        port=port,
        auth={"username": installation.mqtt_user, "password": installation.mqtt_password},
    )


@pytest.mark.parametrize(("name", "device_class"), [("pump", None), ("siren", "alarm")])
def test_every_sample_is_in_the_log_and_in_the_acknowledgement_file(
    installation: Installation, tmp_path: Path, name: str, device_class: str | None
) -> None:
    path, count = tmp_path / f"{name}.acks", 200
    with Log(installation) as log:
        before = log.ends()
    values = [15 + number % 100 / 100 for number in range(count)]

    async def use() -> int:
        async with device(name, installation, path, default_interval_s=0.05, device_class=device_class) as pump:
            for value in values:
                pump.sample(value)
                await asyncio.sleep(0.002)
            assert await pump.drain(20), pump.last_failure
            counters = pump.counters
        assert counters.samples == counters.samples_acked == count
        assert 2 <= counters.sent == counters.acked < count / 4
        return counters.sent

    sent = asyncio.run(use())
    boot = int((tmp_path / f"{name}.boot").read_text())
    assert identities(read_file(path)) == Counter({(name, boot, seq): 1 for seq in range(sent)})
    until(lambda: len(logged(installation, name, before)) >= sent, 30, every_s=0.2)
    stored = logged(installation, name, before)
    assert [each["seq"] for each in stored] == list(range(sent))
    counts = [each.get("count", 1) for each in stored]
    assert sum(counts) == count
    hundredths = [round(each["value"] * weight * 100) for each, weight in zip(stored, counts, strict=True)]
    assert sum(hundredths) == sum(round(value * 100) for value in values)
    assert min(each.get("min", each["value"]) for each in stored) == min(values)
    assert max(each.get("max", each["value"]) for each in stored) == max(values)


def test_advice_is_followed_and_lapses_and_the_deaf_go_on(installation: Installation, tmp_path: Path) -> None:
    default_s = 0.1

    async def use() -> None:
        async with (
            device("listens", installation, tmp_path / "a.acks", default_interval_s=default_s) as listens,
            device(
                "deaf", installation, tmp_path / "b.acks", default_interval_s=default_s, follows_advice=False
            ) as deaf,
        ):
            sampling = asyncio.create_task(sample([listens, deaf]))
            await until_async(lambda: listens.is_advised and deaf.connected)
            await advise(installation, 60.0, 3.0)
            await until_async(lambda: listens.interval_s == 60.0)
            held, free = listens.counters.sent, deaf.counters.sent
            await until_async(lambda: deaf.counters.sent >= free + 10)
            # The one message that may fall into this time is the one whose place in the new interval is drawn.
            assert listens.counters.sent <= held + 1
            assert deaf.interval_s == default_s
            await until_async(lambda: listens.interval_s == default_s)
            await until_async(lambda: listens.counters.sent >= held + 5)
            sampling.cancel()
            for each in (listens, deaf):
                assert await each.drain(20), each.last_failure
                assert each.counters.samples == each.counters.samples_acked

    asyncio.run(use())


async def sample(devices: list[Device]) -> None:
    while True:
        for each in devices:
            each.sample(21.5)
        await asyncio.sleep(0.02)


def test_what_is_no_advice_changes_nothing(installation: Installation, tmp_path: Path) -> None:
    async def use() -> None:
        async with device("d", installation, tmp_path / "a.acks") as listens:
            await until_async(lambda: listens.is_advised)
            for interval_s, lifetime_s in ((-1, 5), (1e9, 5), (5, 0)):
                await advise(installation, interval_s, lifetime_s)
            await advise(installation, 7.0, 30.0)
            await until_async(lambda: listens.interval_s == 7.0)
            assert listens.connected
            assert listens.counters.reconnects == 0

    asyncio.run(use())


def fleet(state: Path, acks: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [*DEVICE_FLEET, "--state", str(state), "--acks", str(acks), *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def test_a_fleet_follows_its_pattern_and_loses_nothing(state: Path, tmp_path: Path) -> None:
    pattern = "0:20,1:200,3:200,3:50,4:50,4:200,6:200"
    arguments = ("--pattern", pattern, "--interval", "0.4", "--progress-json", "--json", "--deaf", "0.5")
    with fleet(state, tmp_path, *arguments) as process:
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    *moments, summary = map(json.loads, output.splitlines())
    assert summary["samples"] == summary["readings"] > 500
    assert summary["sent"] == summary["acked"]
    assert max(moment["connected"] for moment in moments) == 200
    assert all(earlier["acked"] <= later["acked"] for earlier, later in itertools.pairwise(moments))
    found = identities(read_directory(tmp_path))
    assert len(found) == summary["acked"]
    assert set(found.values()) == {1}
    # Those who came back went on with their sequence.
    by_device: dict[str, list[int]] = {}
    for name, _, seq in found:
        by_device.setdefault(name, []).append(seq)
    assert len(by_device) == 200
    assert all(sorted(seqs) == list(range(len(seqs))) for seqs in by_device.values())


def test_a_fleet_of_classes_and_of_devices_that_send_on_change_loses_nothing(state: Path, tmp_path: Path) -> None:
    mix = ("--classes", "telemetry:0.6,alarm:0.4", "--event-driven", "0.5")
    arguments = ("--devices", "20", "--seconds", "2", "--interval", "0.1", "--json", "--prefix", "mixed", *mix)
    with fleet(state, tmp_path, *arguments) as process:
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    summary = json.loads(output)
    assert summary["samples"] == summary["readings"] > 200
    assert summary["sent"] == summary["acked"] == len(identities(read_directory(tmp_path)))
    # Half of the devices send each sample, the other half about every second one.
    assert summary["sent"] < 0.9 * summary["samples"]


def test_a_fleet_obeys_its_standard_input(state: Path, tmp_path: Path) -> None:
    arguments = ("--pattern", "0:3", "--progress-json", "--json", "--follow-stdin", "--prefix", "obedient")
    with fleet(state, tmp_path, *arguments) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        said: list[dict[str, Any]] = []
        for command, connected in ((None, 3), ("pattern 0:12,60:12", 12), ("pattern 0:1", 1)):
            if command is not None:
                process.stdin.write(f"{command}\n")
                process.stdin.flush()
            deadline = time.monotonic() + 30
            while not said or said[-1]["connected"] != connected:
                assert time.monotonic() < deadline, said
                said.append(json.loads(process.stdout.readline()))
        output, errors = process.communicate("quit\n", timeout=30)
    assert process.returncode == 0, errors
    summary = json.loads(output.splitlines()[-1])
    assert summary["readings"] == summary["samples"] > 0


def test_a_terminated_fleet_drains(state: Path, tmp_path: Path) -> None:
    arguments = ("--devices", "20", "--seconds", "600", "--progress-json", "--json", "--prefix", "ended")
    with fleet(state, tmp_path, *arguments) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=30)
    assert process.returncode == 0, errors
    summary = json.loads(output.splitlines()[-1])
    assert summary["readings"] == summary["samples"] > 0
    assert len(identities(read_directory(tmp_path))) == summary["acked"]


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[EmbeddedBrokers]:
    """To be killed."""
    with EmbeddedBrokers(tmp_path / "brokers", BrokerSettings(nodes=1, slices=2)) as running:
        yield running


def test_a_killed_broker_costs_no_sample(brokers: EmbeddedBrokers, tmp_path: Path) -> None:
    installation = brokers.installation
    assert installation is not None
    path = tmp_path / "pump.acks"
    settings = PublisherSettings(window=4, backoff_s_max=0.5)

    async def use() -> Device:
        async with device("pump", installation, path, default_interval_s=0.05, settings=settings) as pump:
            sampling = asyncio.create_task(sample([pump]))
            await until_async(lambda: pump.counters.acked >= 5)
            brokers.kill_broker(0)
            await until_async(lambda: not pump.connected)
            before = pump.counters
            await until_async(lambda: pump.counters.samples >= before.samples + 40)
            # The window is full and the rest is combined.
            assert pump.counters.sent - pump.counters.acked <= 4
            brokers.start_broker(0, wait=False)
            await until_async(lambda: pump.counters.acked >= before.acked + 10 and pump.is_advised, 60)
            sampling.cancel()
            assert await pump.drain(30), pump.last_failure
            return pump

    counters = asyncio.run(use()).counters
    assert counters.samples == counters.samples_acked
    assert counters.sent == counters.acked
    assert counters.reconnects >= 1
    found = identities(read_file(path))
    assert len(found) == counters.acked
    assert set(found.values()) == {1}
