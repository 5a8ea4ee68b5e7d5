"""Batches over time as bars, pure: as wide as a batch took, as high as its rows, with a cap where it was at the limit.

The style sheet's colours are not the only difference: a bar at the limit is solid and has a cap, others are pale.
"""

import math
from collections.abc import Sequence

from tidegate.model.progress import Batch
from tidegate.web.components.colours import colour
from tidegate.web.components.plot import ChartOptions

# Of batches that end within so long the largest is drawn: more bars than this are narrower than a pixel, and cost.
BAR_EVERY_S = 0.5


def drawn_batches(batches: Sequence[Batch]) -> tuple[Batch, ...]:
    """The largest of each half second, one at the limit before others."""
    found: dict[int, Batch] = {}
    for one in batches:
        place = math.floor(one.at_s / BAR_EVERY_S)
        before = found.get(place)
        if before is None or (one.at_limit, one.rows) > (before.at_limit, before.rows):
            found[place] = one
    return tuple(found.values())


def batch_bars(batches: Sequence[Batch], panel: int) -> ChartOptions:
    """One series. A point is when the batch ended, its rows, when it began, and 1 where it was at the limit."""
    return {
        "type": "custom",
        "name": "batch",
        "id": f"batch-{panel}",
        "xAxisIndex": panel,
        "yAxisIndex": panel,
        "data": [
            [one.at_s * 1000, one.rows, round((one.at_s - one.seconds) * 1000), int(one.at_limit)]
            for one in drawn_batches(batches)
        ],
        "encode": {"x": [0, 2], "y": 1},
        "clip": True,
        "animation": False,
        "itemStyle": {"color": colour("tide"), "borderColor": colour("caution")},
        ":renderItem": "tidegateBatch",
    }
