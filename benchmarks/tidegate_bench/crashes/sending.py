"""What a fleet of awkward devices sends: sequences with gaps, boots that hop, repeats of what has long been stored."""

import random
from collections import deque

from tidegate.model.readings import Reading

HOP_SHARE = 1 / 80
RETURN_SHARE = 0.3  # of the hops: back to a boot that was there before
GAP_SHARE = 0.2
WIDE_GAP_SHARE = 0.2  # of the gaps
SEVERAL_SHARE = 0.1  # readings that stand for several
REPEAT_SHARE = 0.04
REMEMBERED = 5_000
BOOT_MAX = 2**31


class AwkwardDevice:
    """One device. No (boot, seq) is ever used for two readings."""

    def __init__(self, name: str, chance: random.Random) -> None:
        self.name = name
        self._chance = chance
        self._next: dict[int, int] = {0: 0}  # by boot
        self._boot = 0

    def reading(self, now_s: float) -> Reading:
        chance = self._chance
        if chance.random() < HOP_SHARE:
            self._hop()
        seq = self._next[self._boot]
        self._next[self._boot] = seq + 1 + self._gap()
        value = round(chance.uniform(-1_000, 1_000), 3)
        at_s = round(now_s, 6)
        if chance.random() >= SEVERAL_SHARE:
            return Reading(value=value, boot=self._boot, seq=seq, time=at_s)
        return Reading(
            value=value,
            boot=self._boot,
            seq=seq,
            time=at_s,
            count=chance.randrange(2, 50),
            min=round(value - chance.uniform(0, 10), 3),
            max=round(value + chance.uniform(0, 10), 3),
            first=round(at_s - chance.uniform(0, 10), 6),
            last=at_s,
        )

    def _hop(self) -> None:
        chance = self._chance
        if len(self._next) > 1 and chance.random() < RETURN_SHARE:
            self._boot = chance.choice(list(self._next))
            return
        while (boot := chance.randrange(BOOT_MAX)) in self._next:
            pass
        self._boot, self._next[boot] = boot, 0

    def _gap(self) -> int:
        chance = self._chance
        if chance.random() >= GAP_SHARE:
            return 0
        return chance.randrange(100, 10_000) if chance.random() < WIDE_GAP_SHARE else chance.randrange(1, 4)


class Repeater:
    """Says now and then that something sent before is to be sent once more: a device that missed its PUBACK does so."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._sent: deque[tuple[str, Reading]] = deque(maxlen=REMEMBERED)

    def note(self, device: str, reading: Reading) -> None:
        self._sent.append((device, reading))

    def repeat(self) -> tuple[str, Reading] | None:
        if not self._sent or self._chance.random() >= REPEAT_SHARE:
            return None
        return self._sent[self._chance.randrange(len(self._sent))]
