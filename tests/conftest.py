"""What all tests share: Hypothesis settings, and one real browser."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from selenium import webdriver

# The machine is shared and slow at times: how long one example takes says nothing about the code.
settings.register_profile("tidegate", deadline=None)
settings.load_profile("tidegate")

# Pytest finds the benchmarks by its own settings; the processes that tests start find them by this.
_BENCHMARKS = str(Path(__file__).parents[1] / "benchmarks")
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), _BENCHMARKS)))


@pytest.fixture(scope="session")
def browser() -> Iterator[webdriver.Chrome]:
    """Headless Chromium, told where everything is, so that nothing is looked for or fetched."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (chromium and driver):
        pytest.skip("no browser here: install the Debian packages chromium and chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    running = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield running
    running.quit()
