"""The picture of the gateways, pure: message rates, then connections, then what waits in them.

One gateway has what comes in and what is acknowledged in one panel. Several have a panel for each, and in it a line per
gateway, in the same colour everywhere: at most four, those of the busiest.
"""

import functools
from collections.abc import Callable, Mapping

from tidegate.web.components.lines import LINES_MAX, RATES_TITLE, fitted, line, named
from tidegate.web.components.plot import ChartLine, ChartOptions, ChartPanel, chart, height_px
from tidegate.web.values.gateway_history import Moment, Record
from tidegate.web.values.words import number

ONE_PX = (170, 80, 80)
SEVERAL_PX = (90, 80, 60, 60)  # with one more title and gap, as high as one gateway's panels
COUNT_AXIS_MIN = 10.0  # half a connection is none
GATEWAYS_PX = height_px(*ONE_PX)

Value = Callable[[Moment], float | None]


def gateways(records: Mapping[str, Record]) -> ChartOptions:
    panels = _of_one(next(iter(records.values()))) if len(records) == 1 else _of_several(records)
    return chart(panels, max((record.now.at_s for record in records.values() if record.now), default=0.0))


def _of_one(record: Record) -> tuple[ChartPanel, ...]:
    rates = (
        *line("in", "ink", record.moments, _in, named("in")),
        *line("acknowledged", "tide", record.moments, _acknowledged, named("acknowledged")),
    )
    return (
        ChartPanel(title=RATES_TITLE, height_px=ONE_PX[0], lines=rates),
        ChartPanel(
            title="Connections",
            height_px=ONE_PX[1],
            lines=line("connections", "ink", record.moments, _connections, named("connected")),
            axis_min=COUNT_AXIS_MIN,
        ),
        ChartPanel(
            title="Publishes held",
            height_px=ONE_PX[2],
            lines=line("held", "caution", record.moments, _held, named("held")),
        ),
    )


def _of_several(records: Mapping[str, Record]) -> tuple[ChartPanel, ...]:
    busiest = sorted(records, key=lambda name: -_busy(records[name]))[:LINES_MAX]
    shown = {name: records[name] for name in sorted(busiest)}
    most = f", the {LINES_MAX} busiest of {len(records)}" if len(records) > LINES_MAX else ""
    values = ((f"Messages per second, in{most}", _in), ("Messages per second, acknowledged", _acknowledged))
    counts = (("Connections", _connections), ("Publishes held", _held))
    return tuple(
        ChartPanel(title=title, height_px=panel_px, lines=_lines(shown, value), axis_min=COUNT_AXIS_MIN)
        for panel_px, (title, value) in zip(SEVERAL_PX, (*values, *counts), strict=True)
    )


def _busy(record: Record) -> float:
    return max((moment.in_per_s or 0.0 for moment in record.moments), default=0.0)


def _lines(shown: Mapping[str, Record], value: Value) -> tuple[ChartLine, ...]:
    return tuple(
        drawn
        for place, (name, record) in enumerate(shown.items(), start=1)
        for drawn in line(name, f"class-{place}", record.moments, value, functools.partial(_labelled, name))
    )


def _labelled(name: str, last: float) -> str:
    return fitted(name, number(last))


def _in(moment: Moment) -> float | None:
    return moment.in_per_s


def _acknowledged(moment: Moment) -> float | None:
    return moment.acknowledged_per_s


def _connections(moment: Moment) -> float | None:
    return moment.connections


def _held(moment: Moment) -> float | None:
    return moment.held
