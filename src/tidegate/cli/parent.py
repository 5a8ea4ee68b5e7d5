"""A part that ``tidegate up`` started must not outlive it, however that ended."""

import asyncio
import os
import threading
import time
from collections.abc import Callable

LOOK_S = 0.5


async def stop_with_parent(stop: asyncio.Event) -> None:
    """Set ``stop`` when the process that started this one is gone; return when it is set, by whomever."""
    parent = os.getppid()
    while os.getppid() == parent and not stop.is_set():
        await asyncio.sleep(LOOK_S)
    stop.set()


def call_without_parent(stop: Callable[[], None]) -> None:
    """Call ``stop``, from a thread of its own, when the process that started this one is gone."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(LOOK_S)
        stop()

    threading.Thread(target=watch, name="parent", daemon=True).start()
