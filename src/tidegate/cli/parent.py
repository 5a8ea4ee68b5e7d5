"""A part that ``tidegate up`` started must not outlive it, however that ended."""

import asyncio
import os

LOOK_S = 0.5


async def stop_with_parent(stop: asyncio.Event) -> None:
    """Set ``stop`` when the process that started this one is gone; return when it is set, by whomever."""
    parent = os.getppid()
    while os.getppid() == parent and not stop.is_set():
        await asyncio.sleep(LOOK_S)
    stop.set()
