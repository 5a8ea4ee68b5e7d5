"""Connections of which nobody knows yet whose they are: only so many may be, and no address pushes others out."""

from typing import Generic, TypeVar

One = TypeVar("One")


class Unknown(Generic[One]):
    """A client says at once who it is. So where there are too many, one gives way that has said nothing for the longest
    time, of the address that has the most of them: whoever floods loses its own."""

    def __init__(self, count_max: int) -> None:
        self._count_max = count_max
        self._addresses: dict[One, str] = {}
        self._by_address: dict[str, dict[One, None]] = {}

    def __len__(self) -> int:
        return len(self._addresses)

    def add(self, one: One, address: str) -> One | None:
        """Whoever has to go for it, if anybody; it may be the new one itself."""
        self._addresses[one] = address
        self._by_address.setdefault(address, {})[one] = None
        return self.displace() if len(self._addresses) > self._count_max else None

    def displace(self) -> One | None:
        """One gives way; None where there is none."""
        if not self._addresses:
            return None
        most = max(self._by_address.values(), key=len)
        oldest = next(iter(most))
        self.discard(oldest)
        return oldest

    def discard(self, one: One) -> None:
        """It is known, or gone."""
        address = self._addresses.pop(one, None)
        if address is not None:
            here = self._by_address[address]
            del here[one]
            if not here:
                del self._by_address[address]
