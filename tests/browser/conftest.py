"""What the browser tests begin with: served installations, beside the one browser of all tests."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from browsing import Served


@pytest.fixture(scope="module")
def serve() -> Iterator[Callable[..., Served]]:
    """Serves a scenario from a second of it on, until the tests of this file are over, however they end."""
    with ExitStack() as running:

        def started(*arguments: str) -> Served:
            served = Served(*arguments)
            running.callback(served.stop)
            return served

        yield started
