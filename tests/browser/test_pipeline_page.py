"""The tab about the pipeline in a real browser: one that is busy, one that is new, and one where much is broken."""

from collections.abc import Callable

import pytest
from browsing import Served, complaints, labels_beyond, opened_tab, shown, until
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By

pytestmark = pytest.mark.live

TAB = "Pipeline", ("Batches and rates", "Raw values", "slice 7")
CELLS = "ol.cells li"


@pytest.fixture(scope="module")
def busy(serve: Callable[..., Served]) -> Served:
    return serve("pipeline", "45")


@pytest.mark.parametrize("width", [1280, 390])
def test_it_shows_batches_rates_slices_and_tables(browser: webdriver.Chrome, busy: Served, width: int) -> None:
    opened_tab(browser, busy, *TAB, width)
    until(browser, lambda: all(part in shown(browser) for part in ("capacity", "arriving", "processed")))
    words = shown(browser)
    for part in (
        "Slice 3 is furthest behind: 1,930 wait",
        "The tables were maintained 3 min ago, next in 2 min.",
        "■ 24 s old",
        "node-1 → node-2",
        "node-2: rows per batch",
        "at the limit)",
        "merged 1,204 files into 16",
        "104,220,911",
        "the same identity with another payload",
        "<b>device</b>",
    ):
        assert part in words, part
    assert labels_beyond(browser, width) == []
    cut: int = browser.execute_script(
        f"return [...document.querySelectorAll('{CELLS} div')].filter(one => one.scrollWidth > one.clientWidth).length"
    )
    assert cut == 0, "every word of a cell is to be seen"
    names_px: list[float] = browser.execute_script(
        "const names = [...document.querySelectorAll('.devices td:first-child')].map(one => one.firstChild);"
        "const range = document.createRange();"
        "return names.map(one => { range.selectNodeContents(one); return range.getBoundingClientRect().height })"
    )
    assert max(names_px) < 30, "no device's name is broken"
    assert complaints(browser) == []


def test_batches_at_the_limit_are_drawn_with_a_cap(browser: webdriver.Chrome, busy: Served) -> None:
    opened_tab(browser, busy, *TAB)
    count = (
        "const bars = [...document.querySelectorAll('main .chart svg path')].map(one => one.getAttribute('fill'));"
        "return bars.filter(fill => fill === arguments[0]).length"
    )
    until(browser, lambda: browser.execute_script(count, "var(--caution)") >= 2)
    assert browser.execute_script(count, "var(--caution)") % 2 == 0, "each is a bar with a cap"


def test_a_cell_keeps_the_focus_and_its_title_while_values_move(browser: webdriver.Chrome, busy: Served) -> None:
    opened_tab(browser, busy, *TAB)
    cell = browser.find_elements(By.CSS_SELECTOR, CELLS)[0]
    browser.execute_script("arguments[0].focus()", cell)
    before = cell.get_attribute("title")
    assert "is on node-1 (epoch 4)." in str(before)
    until(browser, lambda: cell.get_attribute("title") != before)
    assert browser.switch_to.active_element == cell


def test_pointing_at_a_batch_says_what_it_was(browser: webdriver.Chrome, busy: Served) -> None:
    opened_tab(browser, busy, *TAB)
    chart = next(one for one in browser.find_elements(By.CSS_SELECTOR, "main .chart") if one.is_displayed())
    until(browser, lambda: "at the limit)" in shown(browser))
    width = chart.size["width"]
    # Into the first panel, close to its right end: the chart's labels need 130 pixels.
    ActionChains(browser).move_to_element_with_offset(chart, width // 2 - 160, 60 - chart.size["height"] // 2).perform()
    until(browser, lambda: "batch: " in shown(browser) and "at the limit" in shown(browser).partition("batch: ")[2])


def test_a_new_installation_claims_nothing(browser: webdriver.Chrome, serve: Callable[..., Served]) -> None:
    opened_tab(browser, serve("pipeline-empty", "40"), *TAB)
    words = shown(browser)
    for part in (
        "No processing node runs: readings wait in the brokers.",
        "No maintainer has said anything yet",
        "No processing node was seen in the last two minutes.",
        "nobody's",
    ):
        assert part in words, part
    assert complaints(browser) == []


def test_what_is_broken_or_unknown_is_named(browser: webdriver.Chrome, serve: Callable[..., Served]) -> None:
    opened_tab(browser, serve("pipeline-broken", "40"), *TAB)
    words = shown(browser)
    for part in (
        "No maintainer has said anything for 3 min: the tables are shown as they were then.",
        "node-2 does not answer",
        "? not known",
        "Nobody works on slice 5.",
        "more than the 10,000 that are allowed. (said 3 min ago)",
        "Maintenance of readings failed: The disk is full",
        "was due",
    ):
        assert part in words, part
    assert complaints(browser) == []
