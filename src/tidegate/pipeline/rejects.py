"""Who sends what cannot be stored: counted by reason, and the devices that do so most, in bounded memory."""

import hashlib
from collections import Counter
from collections.abc import Mapping

DEVICES_SAID = 20
DEVICES_MAX = 1_000
# A name may have 64 KiB, and what a node says must fit into one message of the control bus.
NAME_CHARACTERS_MAX = 128


class RejectCounter:
    """Since the node started. Devices are many and may be made up: those with the fewest are forgotten first."""

    def __init__(self) -> None:
        self.by_reason: Counter[str] = Counter()
        self._by_device: Counter[tuple[str, str]] = Counter()

    def add(self, rejects: Mapping[tuple[str, str], int]) -> None:
        """Rows by device and kind of reason."""
        for (device, reason), count in rejects.items():
            self.by_reason[reason] += count
            self._by_device[_short(device), reason] += count
        if len(self._by_device) > 2 * DEVICES_MAX:
            self._by_device = Counter(dict(self._by_device.most_common(DEVICES_MAX)))

    def worst(self) -> tuple[tuple[str, str, int], ...]:
        """The devices with most of them: device, reason, how many."""
        return tuple((device, reason, count) for (device, reason), count in self._by_device.most_common(DEVICES_SAID))


def _short(device: str) -> str:
    """Long names are cut off; a digest of the whole keeps two apart that begin alike."""
    if len(device) <= NAME_CHARACTERS_MAX:
        return device
    digest = hashlib.blake2b(device.encode(), digest_size=8).hexdigest()
    return f"{device[: NAME_CHARACTERS_MAX - len(digest) - 1]}…{digest}"
