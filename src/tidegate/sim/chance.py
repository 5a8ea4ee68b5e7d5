"""Random streams by name: what one part of a scenario draws never shifts what another part gets."""

import random


def stream(seed: int, *names: str | int) -> random.Random:
    """The stream of one part. The same seed and names give the same draws in every run, under every policy."""
    return random.Random("/".join(str(part) for part in (seed, *names)))  # noqa: S311 - it models, it guards nothing
