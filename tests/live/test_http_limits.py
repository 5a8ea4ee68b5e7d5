"""Readings by HTTP pay what publishes pay: they wait for their turn in order, or are told when to come again."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from support import bus
from support.clients import connected
from support.commands import Started, started
from support.credentials import settled
from support.gateways import Running
from support.readings import own, post
from support.waiting import until

from tidegate.bus import identity
from tidegate.bus.documents import ADVICE, REVOKED
from tidegate.gateway.identity.settings import IdentitySettings
from tidegate.gateway.settings import GatewaySettings, TopicLimit
from tidegate.model.advice import Advice
from tidegate.model.classes import DEFAULT_CLASSES, DeviceClass
from tidegate.model.installation import Installation
from tidegate.model.registration import Revocation, shard_of

pytestmark = pytest.mark.live
INTERVAL_S = 0.4
SIREN = DeviceClass(name="siren", topics=("telemetry/siren-1",), never_delay=True)


@pytest.fixture(scope="module")
def holding(installation: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    settled(installation, tmp_path_factory.mktemp("state"))
    settings = GatewaySettings(
        name="http-holding",
        hold_s_max=2.0,
        client_credits_max=40,
        client_credits_per_s=0.5,
        limits=(TopicLimit(topics=("telemetry/lim-1", "telemetry/lim-2"), rate_per_s=2, burst=1),),
    )
    with Running(installation, settings, (SIREN, *DEFAULT_CLASSES), IdentitySettings()) as gateway:
        gateway.wait_for_keys()
        yield gateway


def test_who_sends_too_often_waits_and_passes_in_order_and_delays_nobody_else(holding: Running) -> None:
    here, shown, other = holding.here, own(holding.here, "eager"), own(holding.here, "calm")
    holding.advise(INTERVAL_S)
    bodies = [json.dumps({"value": number}).encode() for number in range(6)]
    before = holding.state.held_total
    with connected(here, "order-listener") as listener, ThreadPoolExecutor(6) as clients:
        listener.subscribed(("telemetry/eager", 1))
        sent = []
        began_s = time.monotonic()
        for body in bodies:
            sent.append(clients.submit(post, holding.http, "eager", shown, body))
            time.sleep(0.02)
        until(lambda: holding.state.held == 3)
        calm_s = time.monotonic()
        assert post(holding.http, "calm", other).status == 204
        assert time.monotonic() - calm_s < INTERVAL_S
        assert [one.result().status for one in sent] == [204] * 6
        assert time.monotonic() - began_s > 3 * INTERVAL_S / 1.05 - 0.2, "three at once, the others at their rate"
        until(lambda: listener.payloads == bodies)
    assert (holding.state.held, holding.state.held_total) == (0, before + 3)


def test_whose_turn_does_not_come_in_time_is_told_the_figures(holding: Running) -> None:
    holding.advise(60.0)
    shown, before = own(holding.here, "deaf"), holding.refused("quota exceeded")
    assert [post(holding.http, "deaf", shown).status for _ in range(3)] == [204] * 3
    began_s = time.monotonic()
    answer = post(holding.http, "deaf", shown)
    assert time.monotonic() - began_s < 1.5, "nobody waits in vain"
    assert (answer.status, holding.refused("quota exceeded")) == (429, before + 1)
    said = json.loads(answer.text)
    assert (said["limit"], said["rate_per_s"]) == ("its own rate", round(1 / 60, 3))
    assert 0 <= said["left"] < 0.2
    assert 50 < said["until_s"] < 60
    assert 50 < int(answer.headers["retry-after"]) <= 60
    assert answer.headers["tidegate-limit"] == "its own rate"
    assert float(answer.headers["tidegate-until-s"]) == pytest.approx(said["until_s"], rel=0.01)


def test_who_is_revoked_while_its_reading_waits_does_not_pass(holding: Running) -> None:
    here, shown, shard = holding.here, own(holding.here, "thrown"), shard_of("thrown")
    holding.advise(1.8)
    assert [post(holding.http, "thrown", shown).status for _ in range(3)] == [204] * 3
    with ThreadPoolExecutor(1) as clients:
        waiting = clients.submit(post, holding.http, "thrown", shown)
        until(lambda: holding.state.held == 1)
        with bus.ControlBus(here) as told:
            told.put(REVOKED, {"thrown": Revocation(2, 0.0)}, shard)
            identity.tell_shard(told, shard)
        assert waiting.result().status == 403


def test_bytes_cost_what_they_cost_in_a_publish(holding: Running) -> None:
    large = json.dumps({"value": 1, "note": "x" * 60_000}).encode()
    shown = own(holding.here, "large")
    assert [post(holding.http, "large", shown, large).status for _ in range(2)] == [204, 204]
    said = json.loads(post(holding.http, "large", shown, large).text)
    assert (said["limit"], said["rate_per_s"]) == ("its own credits", 0.5)
    assert 10 <= said["left"] < 14, "of forty, twice fifteen are gone"
    assert 0 < said["until_s"] <= 10


def test_what_may_not_be_delayed_is_not(holding: Running) -> None:
    holding.advise(60.0)
    shown = own(holding.here, "siren-1")
    assert [post(holding.http, "siren-1", shown).status for _ in range(50)] == [204] * 50


def test_a_limit_on_topics_holds_all_devices_together(holding: Running) -> None:
    shown = {device: own(holding.here, device) for device in ("lim-1", "lim-2")}
    holding.advise(0.001)
    with ThreadPoolExecutor(8) as clients:
        began_s = time.monotonic()
        sent = [clients.submit(post, holding.http, device, shown[device]) for device in ("lim-1", "lim-2") * 4]
        answers = [one.result() for one in sent]
    passed = [answer for answer in answers if answer.status == 204]
    assert 4 <= len(passed) <= 6, "one at once, and two a second for two seconds"
    assert time.monotonic() - began_s < 4
    for answer in answers:
        if answer not in passed:
            said = json.loads(answer.text)
            assert (said["limit"], said["rate_per_s"]) == ("the topics telemetry/lim-1, telemetry/lim-2", 2.0)
    assert post(holding.http, "free", own(holding.here, "free")).status == 204


# -- two processes


@pytest.fixture(scope="module")
def several(installation: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    with started(installation, tmp_path_factory.mktemp("several"), "http-several", hold_s_max=0.1) as gateway:
        yield gateway


def http_address(gateway: Started) -> tuple[str, int]:
    ready = next(line for line in gateway.said if "is ready" in line)
    return "127.0.0.1", int(ready.split("(HTTP 127.0.0.1:")[1].split(")")[0])


def test_processes_share_what_a_device_has_left(several: Started) -> None:
    here, address = several.here, http_address(several)
    bus.put(here, ADVICE, Advice(interval_s=30.0, lifetime_s=600.0))

    with ThreadPoolExecutor(16) as clients:

        def statuses(device: str) -> list[int]:
            shown = own(here, device)
            return [one.status for one in clients.map(lambda _: post(address, device, shown), range(16))]

        warm = (f"warm-{number}" for number in range(1_000))
        until(lambda: 429 in statuses(next(warm)) and all(process.publishes for process in several.state.processes))
        for number in range(5):
            found = statuses(f"twice-{number}")
            assert (found.count(204), found.count(429)) == (3, 13), "a burst of three, whichever processes they met"
