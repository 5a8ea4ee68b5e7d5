"""A served installation and how a browser looks at it: what the browser tests share."""

import json
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

TOKEN = "tide-secret-token"
WAIT_S = 30


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


def opened(browser: webdriver.Chrome, served: Served, width: int = 1280, scheme: str = "light") -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    browser.get(f"{served.address}/?token={TOKEN}")
    until(browser, lambda: "Data is" in text(browser, ".state"))


def opened_tab(browser: webdriver.Chrome, served: Served, name: str, parts: tuple[str, ...], width: int = 1280) -> None:
    """The tab, once it shows these words: some that no other tab has, and the last that it draws."""
    browser.get("about:blank")  # a page whose server has ended goes on complaining
    complaints(browser)
    opened(browser, served, width)
    browser.find_element(By.XPATH, f"//*[@role='tab'][.='{name}']").click()
    until(browser, lambda: all(part in shown(browser) for part in parts))


def until(browser: webdriver.Chrome, holds: Callable[[], bool]) -> None:
    WebDriverWait(browser, WAIT_S).until(lambda _: holds())


def text(browser: webdriver.Chrome, selector: str) -> str:
    found: str = browser.execute_script("return document.querySelector(arguments[0])?.textContent ?? ''", selector)
    return found


def shown(browser: webdriver.Chrome) -> str:
    """The words of the panel that is looked at, with those of its chart."""
    words: str = browser.execute_script(
        "const panel = [...document.querySelectorAll('main')].find(one => one.offsetParent);"
        "const words = [...panel.querySelectorAll('.chart svg text')].map(one => one.textContent);"
        "return [panel.innerText, ...words].join('\\n')"
    )
    return words


def labels_beyond(browser: webdriver.Chrome, width: int) -> list[str]:
    """Of the charts' labels, those that a screen of this width cuts off."""
    ends: list[tuple[str, float]] = browser.execute_script(
        "const words = [...document.querySelectorAll('.chart svg text')];"
        "return words.map(one => [one.textContent, one.getBoundingClientRect().right])"
    )
    assert ends
    return [words for words, end_px in ends if end_px > width]


def complaints(browser: webdriver.Chrome) -> list[str]:
    return [entry["message"] for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
