"""Waiting until something holds: the machine is shared, so every wait is generous and ends early."""

import asyncio
import time
from collections.abc import Callable

LATE = "the condition did not come true in time"


def until(condition: Callable[[], object], timeout_s: float = 20.0, *, every_s: float = 0.02) -> float:
    """How long it took."""
    began_s = time.monotonic()
    while not condition():
        assert time.monotonic() < began_s + timeout_s, LATE
        time.sleep(every_s)
    return time.monotonic() - began_s


async def until_async(condition: Callable[[], object], timeout_s: float = 20.0, *, every_s: float = 0.02) -> None:
    """The same where the event loop has to go on meanwhile."""
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s, LATE
        await asyncio.sleep(every_s)
