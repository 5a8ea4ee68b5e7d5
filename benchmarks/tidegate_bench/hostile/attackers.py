"""Processes that attack, and the sink that they meet in calm."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator

from tidegate.machine.ports import HOST
from tidegate.model.errors import TidegateError
from tidegate_bench.hostile.sink import CLOSES_S

SETTLE_S = 2.0


async def recruit(module: str) -> asyncio.subprocess.Process:
    """An attacker, which waits for its order. Its start is work as well: it belongs to neither phase."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", f"tidegate_bench.hostile.{module}"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    await asyncio.sleep(SETTLE_S)
    return process


async def command(attacker: asyncio.subprocess.Process, order: bytes) -> bytes:
    """What it says when it has carried the order out."""
    output, _ = await attacker.communicate(order)
    if attacker.returncode:
        raise TidegateError(f"An attacker ended with status {attacker.returncode}: it says why on standard error.")
    return output


@contextlib.asynccontextmanager
async def sink(closes_s: float = CLOSES_S) -> AsyncIterator[tuple[str, int]]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tidegate_bench.hostile.sink", str(closes_s)), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        yield HOST, int(await process.stdout.readline())
    finally:
        process.terminate()
        await process.wait()
