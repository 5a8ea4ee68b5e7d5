"""The tab about send rates in a real browser: with classes and more nodes on their way, and in shadow mode."""

from collections.abc import Callable

import pytest
from browsing import Served, complaints, labels_beyond, opened, opened_tab, shown, until
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

pytestmark = pytest.mark.live

# The overview has a chart of what is processed as well: only both together are this tab.
TAB = "Send rates", ("Phase and mode", "processed")


@pytest.fixture(scope="module")
def classes(serve: Callable[..., Served]) -> Served:
    return serve("classes", "35")


@pytest.fixture(scope="module")
def shadow(serve: Callable[..., Served]) -> Served:
    return serve("shadow", "60")


def class_rows(browser: webdriver.Chrome) -> list[list[str]]:
    rows: list[list[str]] = browser.execute_script(
        "const panel = [...document.querySelectorAll('main')].find(one => one.offsetParent);"
        "return [...panel.querySelectorAll('.wide tbody tr')].map(row => [...row.cells].map(one => one.textContent))"
    )
    return rows


@pytest.mark.parametrize("width", [1280, 390])
def test_causes_stand_beside_effects(browser: webdriver.Chrome, classes: Served, width: int) -> None:
    opened_tab(browser, classes, *TAB, width)
    words = shown(browser)
    for part in (
        "Devices want to send 1,600 msg/s, Spark can take",
        "telemetry every",
        "demand 1,600",
        "capacity",
        "arriving",
        "alarm default",
        "working",
        "wanted 4",
        "Held in gateways",
        "Acting: decisions are carried out.",
    ):
        assert part in words, part
    assert [row[:2] for row in class_rows(browser)] == [["alarm", "16"], ["command", "104"], ["telemetry", "680"]]
    assert browser.find_elements(By.CSS_SELECTOR, ".chart[role=img][aria-label*='advised intervals']")
    assert complaints(browser) == []


def test_labels_stay_inside_a_narrow_screen(browser: webdriver.Chrome, classes: Served) -> None:
    opened_tab(browser, classes, *TAB, 390)
    assert labels_beyond(browser, 390) == []


def test_a_class_shows_how_much_it_sends(browser: webdriver.Chrome, classes: Served) -> None:
    opened_tab(browser, classes, *TAB)
    until(browser, lambda: all(row[2] not in ("?", "0") for row in class_rows(browser)))
    assert len(class_rows(browser)) == 3


def test_in_shadow_mode_it_says_what_would_be(browser: webdriver.Chrome, shadow: Served) -> None:
    opened_tab(browser, shadow, *TAB)
    words = shown(browser)
    for part in (
        "800 devices would be asked to send every 1.8 s, but nobody is told (shadow).",
        "Interval that would be advised, s (shadow: nobody is told)",
        "Would be advised",
        "Would be held: no more than Spark takes",
        "Shadow: decisions are made and written down, nobody is told.",
    ):
        assert part in words, part
    assert browser.find_elements(By.CSS_SELECTOR, ".chart svg path[stroke-dasharray]")
    assert complaints(browser) == []


def test_the_tab_is_reached_with_keys_alone(browser: webdriver.Chrome, classes: Served) -> None:
    opened(browser, classes)
    browser.find_element(By.XPATH, "//*[@role='tab'][.='Overview']").send_keys(Keys.ARROW_RIGHT)
    focused = browser.switch_to.active_element
    assert focused.text == "Send rates"
    focused.send_keys(Keys.ENTER)
    until(browser, lambda: "Classes of devices" in shown(browser))
    outline = browser.execute_script("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid", "who uses keys sees where they are"
