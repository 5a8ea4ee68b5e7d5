"""What simulated devices measure: 15.00 to 30.00 in whole hundredths, so that sums are exact.

Most measure values that are scattered; an event-driven one measures a value that wanders, so that it changes now and
then.
"""

import random
from collections.abc import Iterator

# In hundredths.
LOWEST, HIGHEST = 1_500, 3_000
STEP_MAX = 10


def value_of(seed: int, index: int, seq: int) -> float:
    """Sample ``seq`` of device ``index``, scattered by a multiplicative hash."""
    mixed = ((seed * 0x9E3779B1 + index) * 0x85EBCA6B + seq) * 0xC2B2AE3D & 0xFFFFFFFF
    mixed = (mixed ^ mixed >> 15) * 0x27D4EB2F & 0xFFFFFFFF
    return (LOWEST + (mixed ^ mixed >> 13) % (HIGHEST - LOWEST + 1)) / 100


def random_walk(chance: random.Random) -> Iterator[float]:
    """Each value is at most a tenth from the one before."""
    hundredths = chance.randint(LOWEST, HIGHEST)
    while True:
        yield hundredths / 100
        step = chance.randint(-STEP_MAX, STEP_MAX)
        # At either end it is turned back.
        hundredths += step if LOWEST <= hundredths + step <= HIGHEST else -step
