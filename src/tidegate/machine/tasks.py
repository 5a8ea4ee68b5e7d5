"""Tasks of an event loop, ended for certain."""

import asyncio

GRACE_S, GRACE_S_MAX = 0.05, 2.0


async def end(*tasks: asyncio.Task[None]) -> None:
    """Cancel them, and return when they are gone, however they ended.

    On Python 3.11 ``wait_for`` loses a cancellation that arrives together with its result, in our code or in a
    library's: so one that is still there after a while is cancelled again, and given twice as long to tidy up.
    """
    grace_s = GRACE_S
    left = {task for task in tasks if not task.done()}
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=grace_s)
        grace_s = min(2 * grace_s, GRACE_S_MAX)
    await asyncio.gather(*tasks, return_exceptions=True)
