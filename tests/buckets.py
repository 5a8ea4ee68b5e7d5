"""Buckets for tests: a cell of their own, and nobody to keep out."""

from contextlib import nullcontext

from tidegate.control.limiting.token_bucket import FULL, Cell, TokenBucket

# Among so many processes nobody sets anything apart: what is kept is the whole burst.
WITHOUT_DRAUGHTS = 64


def bucket(
    rate_per_s: float, burst: float, name: str = "", *, cell: Cell | None = None, processes: int = WITHOUT_DRAUGHTS
) -> TokenBucket:
    """Full, unless the cell says otherwise."""
    own: Cell = [FULL] if cell is None else cell
    return TokenBucket(own, nullcontext(), rate_per_s=rate_per_s, burst=burst, processes=processes, name=name)
