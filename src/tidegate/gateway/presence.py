"""Which devices came by HTTP lately: they have no connection that would say that they are there.

One is counted from its first reading on, until it has sent none for a while, and by one process only, whichever it
came to first. The memory is bounded: of more devices than fit, those are counted that came last.
"""

from collections import OrderedDict
from collections.abc import Callable

from tidegate.gateway.shared.tally import ClassTally

KEPT_S = 600.0  # a device that reports every five minutes is there all the time
DEVICES_MAX = 50_000


class Presence:
    """``came`` with every reading, ``look`` now and then. ``claim`` says whether no other process counts a device, and
    that this one does from now on; ``release`` that it does no more."""

    def __init__(
        self,
        claim: Callable[[str], bool] = lambda _: True,
        release: Callable[[str], None] = lambda _: None,
        devices_max: int = DEVICES_MAX,
        kept_s: float = KEPT_S,
    ) -> None:
        self._claim, self._release = claim, release
        self._devices_max, self._kept_s = devices_max, kept_s
        self._seen: OrderedDict[str, tuple[float, ClassTally]] = OrderedDict()

    def came(self, device: str, of_class: ClassTally, now_s: float) -> None:
        before = self._seen.pop(device, None)
        if before is not None:
            before[1].devices -= 1
        elif not self._claim(device):
            return
        elif len(self._seen) >= self._devices_max:
            self._forget_first()
        of_class.devices += 1
        self._seen[device] = (now_s, of_class)

    def look(self, now_s: float) -> None:
        while self._seen and next(iter(self._seen.values()))[0] < now_s - self._kept_s:
            self._forget_first()

    def _forget_first(self) -> None:
        device, (_, of_class) = self._seen.popitem(last=False)
        of_class.devices -= 1
        self._release(device)
