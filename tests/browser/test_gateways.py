"""The tab about gateways in a real browser: three of them that hold, and one that has nothing to hold."""

from collections.abc import Iterator

import pytest
from browsing import Served, complaints, opened, until
from selenium import webdriver
from selenium.webdriver.common.by import By

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def holding() -> Iterator[Served]:
    served = Served("deaf-3", "50")
    yield served
    served.stop()


def opened_tab(browser: webdriver.Chrome, served: Served, width: int = 1280) -> None:
    complaints(browser)
    opened(browser, served, width)
    browser.find_element(By.XPATH, "//*[@role='tab'][.='Gateways']").click()
    until(browser, lambda: all(part in shown(browser) for part in ("Held clients, and why", "Messages per second")))


def shown(browser: webdriver.Chrome) -> str:
    """The words of the panel that is looked at, with those of its chart."""
    words: str = browser.execute_script(
        "const panel = [...document.querySelectorAll('main')].find(one => one.offsetParent);"
        "const words = [...panel.querySelectorAll('.chart svg text')].map(one => one.textContent);"
        "return [panel.innerText, ...words].join('\\n')"
    )
    return words


@pytest.mark.parametrize("width", [1280, 390])
def test_it_says_who_is_held_and_why(browser: webdriver.Chrome, holding: Served, width: int) -> None:
    opened_tab(browser, holding, width)
    until(browser, lambda: "msg/s. 1,200 are held, because of: its own rate 1,140" in shown(browser))
    words = shown(browser)
    for part in (
        "6,000 publishes",
        "of 1,200 clients",
        "device-000097",
        "the topics telemetry/+/alarm/#",
        "gateway-3 is late",
        "▲ draining",
        "no CONNECT in time",
        "5 on 3.1.1",
        "Messages per second, acknowledged",
        "Publishes held",
    ):
        assert part in words, part
    ends_px: list[float] = browser.execute_script(
        "return [...document.querySelectorAll('.chart svg text')].map(one => one.getBoundingClientRect().right)"
    )
    assert max(ends_px) <= width
    assert complaints(browser) == []


def test_a_page_that_is_opened_later_has_the_past_at_once(browser: webdriver.Chrome, holding: Served) -> None:
    """The rates are known with the first look, because the server followed while nobody looked."""
    opened_tab(browser, holding)
    assert "not known yet" not in shown(browser)


def test_what_is_empty_says_what_that_means(browser: webdriver.Chrome) -> None:
    served = Served("calm", "40")
    opened_tab(browser, served)
    words = shown(browser)
    for part in ("Nobody is held: every publish is passed on as it comes.", "Nothing was dropped.", "nobody waits"):
        assert part in words, part
    served.stop()
    complaints(browser)
