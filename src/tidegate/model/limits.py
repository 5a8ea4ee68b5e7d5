"""What a client that has to wait, or is refused, is told about the limit it met."""

import msgspec


class LimitMet(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which limit, how much of it is left, and in how many seconds the next message may pass."""

    limit: str  # in words: "its own rate", "its own credits", "the topics a/#"
    left: float
    until_s: float
    rate_per_s: float | None = None  # what comes back of it

    def sentence(self) -> str:
        rate = "" if self.rate_per_s is None else f" ({self.rate_per_s:.3g} a second)"
        return f"Limited by {self.limit}{rate}: {self.left:.3g} left, the next may pass in {self.until_s:.3g} s."
