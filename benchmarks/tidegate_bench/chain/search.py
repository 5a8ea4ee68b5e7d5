"""Looking for the highest rate that is held: short probes first, then the proof.

Probes double the rate until one is not held (or halve it until one is), then close in on the border. The highest rate
that a probe held is held for the whole time; where that fails, a tenth less is tried. A rate that was not held while
something else kept the machine busy is tried again. What to try next follows from what was found so far and from
nothing else, so a search that was broken off goes on where it was.
"""

import math
from collections.abc import Sequence

import msgspec

START_PER_S = 2_000.0
LOWEST_PER_S, HIGHEST_PER_S = 20.0, 500_000.0
# Probes end when the lowest rate that was not held is at most this much above the highest that was.
CLOSE = 1.1
LESS = 0.9
# A rate that is not held however often it is tried counts as such, whatever else the machine does.
TRIED_MAX = 3


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """A rate that was, or is to be, held for some time. A proof takes the whole time."""

    rate_per_s: float
    is_proof: bool
    held: bool = False
    disturbed: bool = False


def next_attempt(made: Sequence[Attempt]) -> Attempt | None:
    """What to try next; None where the search is over."""
    made = [attempt for attempt in made if _counts(attempt, made)]
    proofs = [attempt for attempt in made if attempt.is_proof]
    if any(proof.held for proof in proofs):
        return None
    if proofs:
        rate_per_s = min(proof.rate_per_s for proof in proofs) * LESS
        return _attempt(rate_per_s, is_proof=True) if rate_per_s >= LOWEST_PER_S else None
    low = max((attempt.rate_per_s for attempt in made if attempt.held), default=None)
    high = min((one.rate_per_s for one in made if not one.held and (low is None or one.rate_per_s > low)), default=None)
    if low is None:
        rate_per_s = START_PER_S if high is None else high / 2
        return _attempt(rate_per_s, is_proof=False) if rate_per_s >= LOWEST_PER_S else None
    if high is None and low < HIGHEST_PER_S:
        return _attempt(low * 2, is_proof=False)
    if high is not None and high / low > CLOSE:
        return _attempt(math.sqrt(low * high), is_proof=False)
    return _attempt(low, is_proof=True)


def sustained_per_s(made: Sequence[Attempt]) -> float:
    """The rate that was proved; 0 where none was."""
    return max((attempt.rate_per_s for attempt in made if attempt.is_proof and attempt.held), default=0.0)


def _counts(attempt: Attempt, made: Sequence[Attempt]) -> bool:
    def is_same(other: Attempt) -> bool:
        return (other.rate_per_s, other.is_proof) == (attempt.rate_per_s, attempt.is_proof)

    return attempt.held or not attempt.disturbed or sum(map(is_same, made)) >= TRIED_MAX


def _attempt(rate_per_s: float, *, is_proof: bool) -> Attempt:
    return Attempt(rate_per_s=round(rate_per_s, 1), is_proof=is_proof)
