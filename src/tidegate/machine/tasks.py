"""Tasks of an event loop, ended for certain."""

import asyncio

AGAIN_S = 0.2


async def end(*tasks: asyncio.Task[None]) -> None:
    """Cancel them, and return when they are gone.

    On Python 3.11 ``wait_for`` loses a cancellation that arrives together with its result, in our code or in a
    library's: so it is said again until it is heard.
    """
    left = {task for task in tasks if not task.done()}
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=AGAIN_S)
