"""Comparisons whose first plays differ are played again and again, until the rates say whether the sides differ."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from tidegate_bench.interop.rates import Tally, plays_wanted

# A gateway that breaks everything breaks hundreds of behaviours, and each play then waits in vain. What was not played
# often enough by then is not taken to be the same.
REPEATS_S_MAX = 1_800.0

Key = TypeVar("Key")


async def tallies(
    suspects: Sequence[Key],
    play: Callable[[Key, bool], Awaitable[str]],
    *,
    behaviours: int,
    turns: asyncio.Semaphore,
    tell: Callable[[str], None],
    seconds_max: float = REPEATS_S_MAX,
) -> dict[Key, Tally]:
    """``play(suspect, through)`` gives the text of what was observed. All suspects and both sides take turns, as many
    at a time as ``turns`` lets, so that every play meets the same load."""
    found = {suspect: Tally(Counter(), Counter()) for suspect in suspects}
    until_s = time.monotonic() + seconds_max

    async def one(suspect: Key, through: bool) -> None:
        async with turns:
            if time.monotonic() < until_s:
                observed = await play(suspect, through)
                (found[suspect].through if through else found[suspect].direct)[observed] += 1

    while time.monotonic() < until_s:
        wanted = {suspect: plays_wanted(tally, behaviours) for suspect, tally in found.items()}
        if not any(wanted.values()):
            break
        tell(f"{sum(map(bool, wanted.values()))} comparisons differ: {sum(wanted.values()):,} more plays a side.")
        await asyncio.gather(*(one(suspect, through) for suspect, through in in_turn(wanted)))
    return found


def in_turn(wanted: Mapping[Key, int]) -> Iterator[tuple[Key, bool]]:
    """A pair of each suspect after another; which side goes first alternates."""
    for number in range(max(wanted.values(), default=0)):
        for suspect, plays in wanted.items():
            if number < plays:
                yield from ((suspect, number % 2 == 1), (suspect, number % 2 == 0))
