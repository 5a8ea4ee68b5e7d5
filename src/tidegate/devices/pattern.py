"""How many devices there are at which moment: ``0:100,10:100,14:800`` is seconds:devices, linear in between."""

import itertools

import msgspec

from tidegate.model.errors import UserError

DEVICES_MAX = 1_000_000
SECONDS_MAX = 10_000_000.0
_EXAMPLE = "write seconds:devices with commas, seconds growing, like 0:100,10:100,14:800"


class Pattern(msgspec.Struct, frozen=True):
    """Before its first point and after its last one the number of devices stays the same."""

    points: tuple[tuple[float, int], ...]

    @classmethod
    def parse(cls, text: str) -> "Pattern":
        points = tuple(_point(text, part) for part in text.split(","))
        if any(later[0] < earlier[0] for earlier, later in itertools.pairwise(points)):
            raise UserError(f"Pattern {text!r:.80} goes back in time: {_EXAMPLE}.")
        return cls(points)

    @classmethod
    def constant(cls, devices: int, seconds: float) -> "Pattern":
        return cls(((0.0, devices), (seconds, devices)))

    @property
    def end_s(self) -> float:
        return self.points[-1][0]

    @property
    def devices_max(self) -> int:
        return max(devices for _, devices in self.points)

    def devices(self, at_s: float) -> int:
        """Of two points at the same second the later one holds from then on: a step."""
        before: tuple[float, int] | None = None
        for point in self.points:
            if point[0] > at_s:
                return point[1] if before is None else _between(before, point, at_s)
            before = point
        return self.points[-1][1]


def _between(before: tuple[float, int], after: tuple[float, int], at_s: float) -> int:
    share = (at_s - before[0]) / (after[0] - before[0])
    return round(before[1] + share * (after[1] - before[1]))


def _point(text: str, part: str) -> tuple[float, int]:
    seconds, _, devices = part.partition(":")
    try:
        point = float(seconds), int(devices)
    except ValueError:
        raise UserError(f"Pattern {text!r:.80} has the point {part!r:.40}: {_EXAMPLE}.") from None
    if not (0 <= point[0] <= SECONDS_MAX and 0 <= point[1] <= DEVICES_MAX):
        raise UserError(
            f"Pattern {text!r:.80} has the point {part!r:.40}: seconds go from 0 to {SECONDS_MAX:,.0f}, "
            f"devices from 0 to {DEVICES_MAX:,}."
        )
    return point
