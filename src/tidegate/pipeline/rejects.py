"""Who sends what cannot be stored: counted by reason, and the devices that do so most, in bounded memory."""

from collections import Counter
from collections.abc import Mapping

DEVICES_SAID = 20
DEVICES_MAX = 1_000


class RejectCounter:
    """Since the node started. Devices are many and may be made up: those with the fewest are forgotten first."""

    def __init__(self) -> None:
        self.by_reason: Counter[str] = Counter()
        self._by_device: Counter[tuple[str, str]] = Counter()

    def add(self, rejects: Mapping[tuple[str, str], int]) -> None:
        """Rows by device and kind of reason."""
        for (_, reason), count in rejects.items():
            self.by_reason[reason] += count
        self._by_device.update(rejects)
        if len(self._by_device) > 2 * DEVICES_MAX:
            self._by_device = Counter(dict(self._by_device.most_common(DEVICES_MAX)))

    def worst(self) -> tuple[tuple[str, str, int], ...]:
        """The devices with most of them: device, reason, how many."""
        return tuple((device, reason, count) for (device, reason), count in self._by_device.most_common(DEVICES_SAID))
