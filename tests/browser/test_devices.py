"""The tab about devices in a real browser: the line to paste, its button, and one device that is looked up."""

from collections.abc import Callable

import pytest
from browsing import Served, complaints, opened, opened_tab, shown, text, until
from device_views import PASSWORD
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

pytestmark = pytest.mark.live

TAB = "Devices", ("A first reading", "Registered devices")
FIELD = "input[aria-label='Name of the device']"
LINE = (
    f"mosquitto_pub -h 127.0.0.1 -p 1880 -u hello -P {PASSWORD} -i hello -q 1 -t telemetry/hello "
    "-m '{\"value\": 21.5}'"
)


@pytest.fixture(scope="module")
def refusing(serve: Callable[..., Served]) -> Served:
    return serve("devices", "50")


@pytest.fixture(scope="module")
def new(serve: Callable[..., Served]) -> Served:
    return serve("devices-new", "50")


@pytest.mark.parametrize("width", [1280, 390])
def test_it_says_who_is_refused_and_how_a_device_comes(browser: webdriver.Chrome, refusing: Served, width: int) -> None:
    opened_tab(browser, refusing, *TAB, width)
    until(browser, lambda: "about identity, mostly: wrong credentials." in shown(browser))
    words = shown(browser)
    for part in (
        "100 clients are connected.",
        "The rotation from key k1abc4 to key k2xyz9 is under way",
        LINE,
        f"curl -i -u hello:{PASSWORD} -d '{{\"value\": 21.5}}' http://127.0.0.1:8080/v1/telemetry/hello",
        "tidegate device add NAME",
        "not its own topic",
        "100,412",
        "access.yaml",
        "2 h ago",
    ):
        assert part in words, part
    assert "not MQTT" not in words, "that is no matter of identity"
    overflow = browser.execute_script("return document.documentElement.scrollWidth - innerWidth")
    assert overflow <= 0
    assert complaints(browser) == []


def test_the_button_copies_the_line_also_without_a_clipboard(browser: webdriver.Chrome, refusing: Served) -> None:
    """What is copied is pasted into the field: nobody else can say what a clipboard holds."""
    opened_tab(browser, refusing, *TAB)
    browser.execute_script("Object.defineProperty(navigator, 'clipboard', {value: undefined})")
    browser.find_element(By.CSS_SELECTOR, ".copy").click()
    assert text(browser, ".copy") == "Copied"
    field = browser.find_element(By.CSS_SELECTOR, FIELD)
    field.send_keys(Keys.CONTROL, "v")
    until(browser, lambda: field.get_attribute("value") == LINE)
    until(browser, lambda: text(browser, ".copy") == "Copy")


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        pytest.param(
            "pump-1",
            (
                "pump-1: registered since 2026-11-06",
                "note: line <4>",
                "Connected to gateway-1 from 192.0.2.7:40112",
                "8 publishes wait, for 3.2 s.",
                "Limited by its own rate (2 a second): 0 left, the next may pass in 0.45 s.",
                "Last refused or ended 2026-11-17 07:22:00 UTC, from 192.0.2.7:40110: wrong credentials.",
            ),
            id="one that is held",
        ),
        pytest.param("stolen", ("Now: revoked since", "from 192.0.2.9:51514: revoked."), id="one that is revoked"),
        pytest.param(
            "nobody", ("nobody: not registered", "No gateway has seen it lately."), id="one that nobody has heard of"
        ),
        pytest.param("a/b", ("Device name 'a/b' cannot be a topic level",), id="no name of a device"),
    ],
)
def test_a_device_is_looked_up(browser: webdriver.Chrome, refusing: Served, name: str, parts: tuple[str, ...]) -> None:
    opened_tab(browser, refusing, *TAB)
    browser.find_element(By.CSS_SELECTOR, FIELD).send_keys(name, Keys.ENTER)
    until(browser, lambda: all(part in shown(browser) for part in parts))
    assert complaints(browser) == []


def test_before_anything_has_arrived_the_first_screen_says_what_to_do(browser: webdriver.Chrome, new: Served) -> None:
    opened(browser, new)
    until(browser, lambda: "Nothing has arrived yet:" in shown(browser))
    assert LINE in shown(browser)


def test_after_that_it_does_not(browser: webdriver.Chrome, refusing: Served) -> None:
    opened(browser, refusing)
    until(browser, lambda: "Raw values" in shown(browser))
    assert PASSWORD not in browser.page_source
