"""The dashboard in a real browser: headless Chromium against a served installation that moves."""

import json
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

TOKEN = "tide-secret-token"
WAIT_S = 30

pytestmark = pytest.mark.live


class Served:
    """A process that serves views, ended by closing its standard input."""

    def __init__(self, *arguments: str) -> None:
        script = Path(__file__).with_name("serve_views.py")
        self._process = subprocess.Popen(
            [sys.executable, str(script), TOKEN, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self.address = self._process.stdout.readline().strip()
        assert self.address.startswith("http://127.0.0.1:")

    def mode(self) -> dict[str, Any]:
        request = urllib.request.Request(f"{self.address}/api/view", headers={"Authorization": f"Bearer {TOKEN}"})
        with urllib.request.urlopen(request, timeout=WAIT_S) as answer:
            mode: dict[str, Any] = json.load(answer)["mode"]
        return mode

    def stop(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            assert self._process.wait(WAIT_S) == 0
        finally:
            self._process.kill()
            self._process.stdout.close()


@pytest.fixture(scope="module")
def protected() -> Iterator[Served]:
    served = Served("protected", "60")
    yield served
    served.stop()


def opened(browser: webdriver.Chrome, served: Served, width: int = 1280) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(f"{served.address}/?token={TOKEN}")
    until(browser, lambda: "Data is" in text(browser, ".state"))


def until(browser: webdriver.Chrome, holds: Callable[[], bool]) -> None:
    WebDriverWait(browser, WAIT_S).until(lambda _: holds())


def text(browser: webdriver.Chrome, selector: str) -> str:
    found: str = browser.execute_script("return document.querySelector(arguments[0])?.textContent ?? ''", selector)
    return found


def complaints(browser: webdriver.Chrome) -> list[str]:
    return [entry["message"] for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]


def requested(browser: webdriver.Chrome) -> set[str]:
    """Every address that the browser asked for, web sockets included."""
    found = set()
    for entry in browser.get_log("performance"):
        event = json.loads(entry["message"])["message"]
        if event["method"] == "Network.requestWillBeSent":
            found.add(event["params"]["request"]["url"])
        elif event["method"] == "Network.webSocketCreated":
            found.add(event["params"]["url"])
    return found


def test_the_first_screen_says_what_is_and_moves(browser: webdriver.Chrome, protected: Served) -> None:
    complaints(browser), requested(browser)
    opened(browser, protected)
    assert "token" not in browser.current_url
    assert "pump-house" in text(browser, "header")
    assert "devices are asked to send every" in text(browser, ".state")
    until(browser, lambda: all(word in text(browser, ".chart svg") for word in ("now", "arriving", "capacity")))
    assert "without" in text(browser, ".chart svg"), "the past run is drawn"
    assert len(browser.find_elements(By.CSS_SELECTOR, ".chain li")) == 5
    before, drawn = text(browser, ".chain"), text(browser, ".chart svg")
    until(browser, lambda: text(browser, ".chain") != before and text(browser, ".chart svg") != drawn)
    assert complaints(browser) == []
    hosts = {
        address.split("/")[2]
        for address in requested(browser)
        if address.split(":")[0] in ("http", "https", "ws", "wss")
    }
    assert hosts == {protected.address.removeprefix("http://")}


@pytest.mark.parametrize("width", [1280, 390])
def test_every_tab_fits_its_screen(browser: webdriver.Chrome, protected: Served, width: int) -> None:
    opened(browser, protected, width)
    tabs = {found.text: found for found in browser.find_elements(By.CSS_SELECTOR, ".q-tab")}
    assert list(tabs) == ["Overview", "Send rates", "Gateway", "Brokers", "Pipeline", "Decisions"]
    for name, tab in tabs.items():
        tab.click()
        until(browser, lambda: any(panel.text for panel in browser.find_elements(By.CSS_SELECTOR, "main")))
        wide, shown = browser.execute_script(
            "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
        )
        assert wide <= shown, name
    assert complaints(browser) == []


def test_an_opened_reason_stays_open_while_values_move(browser: webdriver.Chrome, protected: Served) -> None:
    opened(browser, protected)
    browser.find_element(By.CSS_SELECTOR, "details summary").send_keys(Keys.ENTER)
    before = text(browser, ".chain")
    until(browser, lambda: text(browser, ".chain") != before)
    reason = browser.find_element(By.CSS_SELECTOR, "details[open] dl")
    assert all(word in reason.text for word in ("Readings", "Rule", "Not taken"))


def test_the_switch_turns_protection_off_and_on(browser: webdriver.Chrome, protected: Served) -> None:
    opened(browser, protected)
    switch = browser.find_element(By.CSS_SELECTOR, ".q-toggle")
    switch.send_keys(Keys.SPACE)
    until(browser, lambda: protected.mode()["send_rate"] == "off" and text(browser, ".mode").startswith("off"))
    switch.send_keys(Keys.SPACE)
    until(browser, lambda: protected.mode()["send_rate"] == "acting")


def test_freezing_asks_first_and_release_does_not(browser: webdriver.Chrome, protected: Served) -> None:
    opened(browser, protected)
    button = browser.find_element(By.CSS_SELECTOR, ".controls .q-btn")
    button.click()
    until(browser, lambda: "Freeze all acting?" in text(browser, ".q-dialog"))
    assert protected.mode()["frozen"] is False
    browser.find_element(By.CSS_SELECTOR, ".q-dialog .q-btn").click()
    until(browser, lambda: protected.mode()["frozen"] is True and "Release" in button.text)
    until(browser, lambda: not browser.find_elements(By.CSS_SELECTOR, ".q-dialog__backdrop"))
    button.click()
    until(browser, lambda: protected.mode()["frozen"] is False)


def test_colours_follow_the_system(browser: webdriver.Chrome, protected: Served) -> None:
    papers = []
    for scheme in ("light", "dark"):
        feature = {"name": "prefers-color-scheme", "value": scheme}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        opened(browser, protected)
        papers.append(browser.execute_script("return getComputedStyle(document.body).backgroundColor"))
    assert papers == ["rgb(255, 255, 255)", "rgb(16, 23, 31)"]


def test_a_wrong_token_gets_the_sentence(browser: webdriver.Chrome, protected: Served) -> None:
    browser.get(f"{protected.address}/?token=wrong")
    assert "installation.json" in text(browser, "body")
    complaints(browser)


def test_the_page_says_when_its_values_are_old(browser: webdriver.Chrome) -> None:
    served = Served("calm", "40", "still")
    opened(browser, served)
    until(browser, lambda: "s old values: the controller does not answer" in text(browser, "#stale:not([hidden])"))
    served.stop()
    seen = text(browser, "#stale")
    until(browser, lambda: text(browser, "#stale") != seen)
