"""A device that samples ten times a second and sends as often as a running `tidegate up` can take.

`tidegate device add pump-7` says where it connects, and its password:

    DEVICE_PASSWORD=... python examples/device.py 127.0.0.1:1883 pump-7
"""

import asyncio
import math
import os
import sys
import time
from pathlib import Path

from tidegate.devices.device import Device


async def main(address: str, name: str) -> None:
    host, port = address.split(":")
    async with Device(
        name,
        addresses=[(host, int(port))],
        user=name,
        password=os.environ["DEVICE_PASSWORD"],
        acknowledgements=Path(f"{name}.acks"),
    ) as device:
        for _ in range(100):
            device.sample(20 + math.sin(time.time()))
            await asyncio.sleep(0.1)
        print("all acknowledged:", await device.drain(5), device.counters)  # noqa: T201


asyncio.run(main(*sys.argv[1:]))
