"""Devices, gateway, brokers and two controllers as ``tidegate up`` runs them, without Spark: the queue only grows."""

import json
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.support.wait import WebDriverWait
from support.bus import ControlBus
from support.processes import DEVICE_FLEET
from support.waiting import until

from tidegate.demo.watching import Window
from tidegate.local.chain import Chain
from tidegate.model.decisions import Mode
from tidegate.model.view import View
from tidegate.settings.tree import Settings

pytestmark = [pytest.mark.live, pytest.mark.timeout(180)]
FLEET = [*DEVICE_FLEET, "--progress-json", "--seconds", "150"]
DEVICES = 30
DEFAULT_S = 0.5
# Whatever a policy's first cut is, a held device sends noticeably less often than by default.
HELD_S = 1.1 * DEFAULT_S
LIFETIME_S = 4.0
SETTINGS = {
    "TIDEGATE_CONTROLLER__LEASE_S": "2",
    "TIDEGATE_CONTROLLER__ADVICE_LIFETIME_S": str(LIFETIME_S),
    "TIDEGATE_CONTROLLER__OVERLOAD": "waiting > 20",
}


class Site:
    """A chain with a fleet on it. The fleet's account of itself comes as one line a second."""

    def __init__(self, chain: Chain) -> None:
        self.chain = chain
        self.window = Window(chain.web_addresses, chain.installation.token)
        self.fleet = subprocess.Popen(
            [*FLEET, "--state", str(chain.state), "--devices", str(DEVICES), "--interval", str(DEFAULT_S)],
            stdout=subprocess.PIPE,
            text=True,
        )

    def view(self) -> View:
        found = self.window.view()
        assert found is not None
        return found

    def intervals_s(self) -> Iterator[float]:
        """The mean interval in force at the devices, each second."""
        assert self.fleet.stdout is not None
        for line in self.fleet.stdout:
            yield json.loads(line)["interval_s_mean"]

    def until_interval(self, holds: Callable[[float], bool], within_s: float) -> float:
        began_s = time.monotonic()
        for interval_s in self.intervals_s():
            passed_s = time.monotonic() - began_s
            if holds(interval_s):
                return passed_s
            assert passed_s < within_s, f"devices still send every {interval_s} s"
        raise AssertionError("the fleet has ended")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    state: Path = tmp_path_factory.mktemp("chain")
    with Chain(state, Settings(), lambda _: None, nodes=0, controllers=2, environment=SETTINGS, logs=True) as chain:
        chain.start_brokers()
        chain.start_parts()
        for _ in chain.ready():
            pass
        running = Site(chain)
        try:
            yield running
        finally:
            running.fleet.kill()
            running.fleet.communicate()


def test_the_dashboard_of_a_running_chain_moves(site: Site, browser: webdriver.Chrome) -> None:
    host, port = site.chain.web_addresses[0]
    browser.get(f"http://{host}:{port}/?token={site.chain.installation.token}")

    def shown() -> str:
        found: str = browser.execute_script("return document.body.innerText")
        return found

    waiting = WebDriverWait(browser, 40)
    waiting.until(lambda _: re.search(r"Data is \S+ s old", shown()) and str(DEVICES) in shown())
    before = shown()
    waiting.until(lambda _: shown() != before)
    assert site.chain.installation.token not in browser.current_url


def test_an_overload_reaches_the_devices_as_a_longer_interval(site: Site) -> None:
    site.until_interval(lambda interval_s: interval_s > HELD_S, within_s=40)
    decision = site.view().decisions[-1]
    assert decision.acted
    assert decision.reason.measurements["waiting"] > 20
    assert decision.reason.rule
    assert decision.reason.rejected


def test_switched_off_devices_return_at_once_and_switched_on_they_are_held_again(site: Site) -> None:
    site.window.set_mode(Mode(send_rate="off"))
    site.until_interval(lambda interval_s: interval_s == DEFAULT_S, within_s=20)
    site.window.set_mode(Mode(send_rate="acting"))
    site.until_interval(lambda interval_s: interval_s > HELD_S, within_s=20)


def test_the_catalogue_names_all_that_is_on_the_bus_of_an_overloaded_chain(site: Site) -> None:
    with ControlBus(site.chain.installation) as bus:
        assert {"advice", "mode", "leader", "gateways", "loop", "routes"} <= bus.documents()


def test_when_the_leader_is_killed_the_other_leads_and_devices_stay_held(site: Site) -> None:
    before = site.view().leader
    assert before is not None
    site.chain.parts[before].kill()
    until(lambda: site.view().leader not in (before, None), every_s=0.1)
    assert site.view().leader in site.chain.parts
    site.until_interval(lambda interval_s: interval_s > HELD_S, within_s=LIFETIME_S + 10)


def test_when_all_controllers_are_killed_devices_return_within_the_lifetime(site: Site) -> None:
    for name, part in site.chain.parts.items():
        if name.startswith("controller-"):
            part.kill()
    # The fleet tells once a second, and the machine may be busy.
    site.until_interval(lambda interval_s: interval_s == DEFAULT_S, within_s=LIFETIME_S + 3)
