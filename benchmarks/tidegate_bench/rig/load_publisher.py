"""A publisher for loads: it waits where a device would go on combining samples, and notes how late it was."""

import asyncio
from typing import Any

from tidegate.devices.publisher import Publisher
from tidegate.model.readings import Reading


class LoadPublisher(Publisher):
    """``late_s_max`` is how far a reading was sent behind the caller's schedule, at most."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.late_s_max = 0.0

    async def publish(self, device: str, reading: Reading, *, due_s: float | None = None) -> None:
        """Send one reading; waits while the window is full. ``due_s`` is when it should be sent, in the loop's time."""
        while not self.offer(device, reading):
            await self.changed()
        if due_s is not None:
            self.late_s_max = max(self.late_s_max, asyncio.get_running_loop().time() - due_s)

    async def drain(self, timeout_s: float) -> bool:
        """Wait until every reading is acknowledged; False where that took longer than the time given."""
        try:
            async with asyncio.timeout(timeout_s):
                while self.in_flight:
                    await self.changed()
        except TimeoutError:
            return False
        return True
