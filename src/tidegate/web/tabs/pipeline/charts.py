"""The picture of the pipeline, pure: each node's batches; below them what arrives, what it does, what it can do.

Nodes stand under each other over the same time: at most four, those that did most.
"""

from collections.abc import Mapping, Sequence

from tidegate.model.progress import Batch
from tidegate.web.components.bars import batch_bars
from tidegate.web.components.lines import line, named
from tidegate.web.components.plot import ChartLine, ChartOptions, ChartPanel, chart, height_px
from tidegate.web.values.node_history import NodeRecord
from tidegate.web.values.words import shortened

NODES_MAX = 4
NODE_LETTERS_MAX = 24
CAPTION = (
    "A bar is a batch: as wide as the time it took, as high as its rows; solid with a cap where the node was at its "
    "limit. Dashed is the node's capacity, from such batches."
)
NO_NODE = "No processing node was seen in the last two minutes."
EMPTY_PX = 8  # an element without any height cannot be drawn in
ROWS_AXIS_MIN = 10.0
# Of each node: batches, rates. One node alone has more room.
ONE_PX, SEVERAL_PX = (90, 150), (56, 84)

Records = Mapping[str, NodeRecord]


def pipeline(records: Records) -> ChartOptions:
    shown = _shown(records)
    panels = [panel for name, record in shown.items() for panel in _panels(name, record, _sizes_px(len(shown)))]
    options = chart(panels, max((record.now.at_s for record in shown.values() if record.now), default=0.0))
    options["series"] += [batch_bars(record.batches, 2 * place) for place, record in enumerate(shown.values())]
    return options


def chart_px(records: Records) -> int:
    """It grows with the nodes."""
    count = len(_shown(records))
    return height_px(*(_sizes_px(count) * count)) if count else EMPTY_PX


def caption(records: Records) -> str:
    most = f" The {NODES_MAX} busiest of {len(records)} nodes are drawn." if len(records) > NODES_MAX else ""
    return CAPTION + most if records else NO_NODE


def _sizes_px(nodes: int) -> tuple[int, int]:
    return ONE_PX if nodes == 1 else SEVERAL_PX


def _shown(records: Records) -> Records:
    busiest = sorted(records, key=lambda name: (-sum(one.rows for one in records[name].batches), name))[:NODES_MAX]
    return {name: records[name] for name in sorted(busiest)}


def _panels(name: str, record: NodeRecord, sizes_px: tuple[int, int]) -> tuple[ChartPanel, ChartPanel]:
    short = shortened(name, NODE_LETTERS_MAX)
    rows_max = max((one.rows for one in record.batches), default=0)
    return (
        ChartPanel(
            title=f"{short}: rows per batch{_limit_words(record.batches)}",
            height_px=sizes_px[0],
            lines=(),
            # The caps of batches at the limit stand above their bars.
            axis_min=max(ROWS_AXIS_MIN, rows_max * 1.1),
        ),
        ChartPanel(
            title=f"{short}: messages per second{_capacity_words(record)}", height_px=sizes_px[1], lines=rates(record)
        ),
    )


def _limit_words(batches: Sequence[Batch]) -> str:
    at_limit = sum(one.at_limit for one in batches)
    if not batches:
        return " (none in two minutes)"
    return f" ({at_limit:,} of {len(batches):,} at the limit)" if at_limit else " (none at the limit)"


def _capacity_words(record: NodeRecord) -> str:
    known = any(one.capacity_per_s is not None for one in record.moments)
    return "" if known else " (capacity not seen yet)"


def rates(record: NodeRecord) -> tuple[ChartLine, ...]:
    moments = record.moments
    return (
        *line("capacity", "caution", moments, lambda one: one.capacity_per_s, named("capacity"), dashed=True),
        *line("arriving", "ink", moments, lambda one: one.arriving_per_s, named("arriving")),
        *line("processed", "tide", moments, lambda one: one.processed_per_s, named("processed")),
    )
