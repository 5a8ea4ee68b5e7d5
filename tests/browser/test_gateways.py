"""The tab about gateways in a real browser: three of them that hold, and one that has nothing to hold."""

from collections.abc import Callable

import pytest
from browsing import Served, complaints, labels_beyond, opened_tab, shown, until
from selenium import webdriver

pytestmark = pytest.mark.live

TAB = "Gateways", ("Held clients, and why", "Messages per second")


@pytest.fixture(scope="module")
def holding(serve: Callable[..., Served]) -> Served:
    return serve("deaf-3", "50")


@pytest.mark.parametrize("width", [1280, 390])
def test_it_says_who_is_held_and_why(browser: webdriver.Chrome, holding: Served, width: int) -> None:
    opened_tab(browser, holding, *TAB, width)
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
    assert labels_beyond(browser, width) == []
    assert complaints(browser) == []


def test_a_page_that_is_opened_later_has_the_past_at_once(browser: webdriver.Chrome, holding: Served) -> None:
    """The rates are known with the first look, because the server followed while nobody looked."""
    opened_tab(browser, holding, *TAB)
    assert "not known yet" not in shown(browser)


def test_what_is_empty_says_what_that_means(browser: webdriver.Chrome, serve: Callable[..., Served]) -> None:
    opened_tab(browser, serve("calm", "40"), *TAB)
    words = shown(browser)
    for part in ("Nobody is held: every publish is passed on as it comes.", "Nothing was dropped.", "nobody waits"):
        assert part in words, part
