"""A device that samples ten times a second and sends as often as a running `tidegate up` can take."""

import asyncio
import math
import time
from pathlib import Path

from tidegate.devices.device import Device
from tidegate.model.installation import Installation


async def main() -> None:
    here = Installation.load(Path(".tidegate"))
    credentials = {"user": here.mqtt_user, "password": here.mqtt_password}
    acknowledgements = Path(".tidegate/acks/example.acks")
    async with Device(
        "pump-7", addresses=here.device_addresses, acknowledgements=acknowledgements, **credentials
    ) as pump:
        for _ in range(100):
            pump.sample(20 + math.sin(time.time()))
            await asyncio.sleep(0.1)
        print("all acknowledged:", await pump.drain(5), pump.counters)  # noqa: T201


asyncio.run(main())
