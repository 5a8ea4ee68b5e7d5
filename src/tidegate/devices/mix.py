"""Which devices of a simulated fleet are of which class, and which of them send on change.

It depends only on the seed and the device's number. The numbers are scattered over the unit square by an additive
recurrence (steps of 1/p and 1/p², p the plastic number), so that whichever first ones of the devices are there have
nearly the shares that were asked for, and every class its share of those that send on change.
"""

import itertools

import msgspec

from tidegate.devices.topics import check_class
from tidegate.model.errors import UserError

_WHOLE = 1 << 64
_PLASTIC = 1.324717957244746
_CLASS_STEP, _EVENT_STEP = round(_WHOLE / _PLASTIC), round(_WHOLE / _PLASTIC**2)
_SEED_STEP = 0x9E3779B97F4A7C15
# Shares in decimals may add up to a little more than 1.
_ROUNDING = 1e-9
_EXAMPLE = "write class:share with commas, like telemetry:0.8,alarm:0.1,command:0.1"


class Mix(msgspec.Struct, frozen=True, kw_only=True):
    """Shares are of all devices; who falls to no class has none."""

    classes: tuple[tuple[str, float], ...] = ()
    event_driven: float = 0.0
    seed: int = 0

    def device_class(self, index: int) -> str | None:
        place = self._place(index, _CLASS_STEP)
        ends = itertools.accumulate(share for _, share in self.classes)
        return next((name for (name, _), end in zip(self.classes, ends, strict=True) if place < end), None)

    def is_event_driven(self, index: int) -> bool:
        return self._place(index, _EVENT_STEP) < self.event_driven

    def _place(self, index: int, step: int) -> float:
        return (self.seed * _SEED_STEP + index * step) % _WHOLE / _WHOLE


def parse_classes(text: str) -> tuple[tuple[str, float], ...]:
    """``telemetry:0.8,alarm:0.1`` as pairs of class and share."""
    classes = tuple(_class(text, part.strip()) for part in text.split(","))
    if len(dict(classes)) < len(classes):
        raise UserError(f"Classes {text!r:.80} name a class twice: {_EXAMPLE}.")
    total = sum(share for _, share in classes)
    if total > 1 + _ROUNDING:
        raise UserError(f"Classes {text!r:.80} have shares that add up to {total:g}: they are shares of 1.")
    return classes


def _class(text: str, part: str) -> tuple[str, float]:
    name, _, number = (piece.strip() for piece in part.partition(":"))
    check_class(name)
    try:
        share = float(number)
    except ValueError:
        raise UserError(f"Classes {text!r:.80} have the part {part!r:.40}: {_EXAMPLE}.") from None
    if not 0 < share <= 1:
        raise UserError(f"Classes {text!r:.80} have the part {part!r:.40}: a share is above 0 and at most 1.")
    return name, share
