"""Effects: what an action is expected to change, by how much, and by when."""

import msgspec


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """A property of a source shall be at most ``below``, or at least ``above``, within ``within_s``."""

    source: str
    quantity: str  # a property of it
    below: float | None = None
    above: float | None = None
    within_s: float

    def holds(self, value: float) -> bool:
        return (self.below is None or value <= self.below) and (self.above is None or value >= self.above)

    @property
    def words(self) -> str:
        bound = f"at most {self.below:,.4g}" if self.below is not None else f"at least {self.above:,.4g}"
        return f"{self.quantity} of {self.source} {bound} within {self.within_s:,.0f} s"
