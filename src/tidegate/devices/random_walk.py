"""What an event-driven device of a simulated fleet measures: a value that wanders, so that it changes now and then."""

import random
from collections.abc import Iterator

# Hundredths, so that sums are exact: the same range as the values of the other simulated devices.
LOWEST, HIGHEST = 1_500, 3_000
STEP_MAX = 10


def random_walk(chance: random.Random) -> Iterator[float]:
    """15.00 to 30.00 in whole hundredths, each value at most a tenth from the one before."""
    hundredths = chance.randint(LOWEST, HIGHEST)
    while True:
        yield hundredths / 100
        step = chance.randint(-STEP_MAX, STEP_MAX)
        # At either end it is turned back.
        hundredths += step if LOWEST <= hundredths + step <= HIGHEST else -step
