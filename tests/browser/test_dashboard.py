"""The dashboard in a real browser: headless Chromium against a served installation that moves."""

import contextlib
import json
from collections.abc import Callable

import pytest
from browsing import Served, complaints, opened, text, until
from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def protected(serve: Callable[..., Served]) -> Served:
    return serve("protected", "60")


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
    assert list(tabs) == ["Overview", "Send rates", "Gateways", "Brokers", "Pipeline", "Devices", "Rules", "Decisions"]
    for name, tab in tabs.items():
        tab.click()
        until(browser, lambda: any(panel.text for panel in browser.find_elements(By.CSS_SELECTOR, "main")))
        wide, shown = browser.execute_script(
            "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
        )
        assert wide <= shown, name
        sides = browser.execute_script(
            "const style = getComputedStyle(arguments[0]); return [style.paddingLeft, style.paddingRight]", tab
        )
        assert width > 760 or sides[0] == sides[1], "the word stands in the middle of what is shaded"
    assert complaints(browser) == []


def test_an_opened_reason_stays_open_while_values_move(browser: webdriver.Chrome, protected: Served) -> None:
    opened(browser, protected)
    browser.find_element(By.CSS_SELECTOR, "details summary").send_keys(Keys.ENTER)
    before = text(browser, ".chain")
    until(browser, lambda: text(browser, ".chain") != before)
    reason = browser.find_element(By.CSS_SELECTOR, "details[open] dl")
    assert all(word in reason.text for word in ("Measurements", "Rule", "Not taken"))


def test_the_switch_has_acting_shadow_and_off_and_obeys_keys(browser: webdriver.Chrome, protected: Served) -> None:
    opened(browser, protected)
    for key, mode in ((Keys.SPACE, "shadow"), (Keys.ENTER, "off"), (Keys.SPACE, "acting")):
        browser.find_element(By.XPATH, f"//*[@role='group']//button[.='{mode.capitalize()}']").send_keys(key)
        until(browser, lambda: protected.mode()["send_rate"] == mode and text(browser, ".mode").startswith(mode))  # noqa: B023
        pressed = browser.find_elements(By.CSS_SELECTOR, "[role=group] [aria-pressed=true]")
        assert [button.text for button in pressed] == [mode.capitalize()]


def confirmed(browser: webdriver.Chrome) -> bool:
    """Press the dialog's button. While it is still moving in, a click may be lost: it is there until one was not."""
    with contextlib.suppress(WebDriverException):
        for button in browser.find_elements(By.CSS_SELECTOR, ".q-dialog .q-btn")[:1]:
            button.click()
    return False


def test_freezing_asks_first_and_release_does_not(browser: webdriver.Chrome, protected: Served) -> None:
    opened(browser, protected)
    button = browser.find_element(By.CSS_SELECTOR, ".controls > .q-btn")
    button.click()
    until(browser, lambda: "Freeze all acting?" in text(browser, ".q-dialog"))
    assert protected.mode()["frozen"] is False
    until(browser, lambda: confirmed(browser) or protected.mode()["frozen"] is True)
    until(browser, lambda: protected.mode()["frozen"] is True and "Release" in button.text)
    until(browser, lambda: not browser.find_elements(By.CSS_SELECTOR, ".q-dialog__backdrop"))
    button.click()
    until(browser, lambda: protected.mode()["frozen"] is False)


def test_colours_follow_the_system(browser: webdriver.Chrome, protected: Served) -> None:
    papers = []
    for scheme in ("light", "dark"):
        opened(browser, protected, scheme=scheme)
        papers.append(browser.execute_script("return getComputedStyle(document.body).backgroundColor"))
    assert papers == ["rgb(255, 255, 255)", "rgb(16, 23, 31)"]


def test_a_wrong_token_gets_the_sentence(browser: webdriver.Chrome, protected: Served) -> None:
    browser.get(f"{protected.address}/?token=wrong")
    assert "installation.json" in text(browser, "body")
    complaints(browser)


def test_the_page_says_when_its_values_are_old(browser: webdriver.Chrome, serve: Callable[..., Served]) -> None:
    served = serve("calm", "40", "still")
    opened(browser, served)
    until(browser, lambda: "s old values: the controller does not answer" in text(browser, "#stale:not([hidden])"))
    served.stop()
    seen = text(browser, "#stale")
    until(browser, lambda: text(browser, "#stale") != seen)
