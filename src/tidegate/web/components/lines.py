"""Lines over time, pure: how they come from values, what stands at their ends, and those that several tabs draw."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from tidegate.model.view import Sample
from tidegate.web.components.plot import ChartLine, ChartOptions
from tidegate.web.values.ages import SPAN_S
from tidegate.web.values.words import number, shortened

RATES_TITLE = "Messages per second"
LINES_MAX = 4  # of one panel, where each is a class or a gateway: there are no more colours for them
LABEL_LETTERS_MAX = 16


class Timed(Protocol):
    """A value that was measured at a moment."""

    @property
    def at_s(self) -> float: ...


Measured = TypeVar("Measured", bound=Timed)


def line(
    name: str,
    hue: str,
    measured: Iterable[Measured],
    value: Callable[[Measured], float | None],
    label: Callable[[float], str],
    *,
    dashed: bool = False,
    stepped: bool = False,
) -> tuple[ChartLine, ...]:
    """One line through what is known, with its last value as a label, or no line where nothing is."""
    points = tuple((one.at_s, found) for one in measured if (found := value(one)) is not None)
    if not points:
        return ()
    return (ChartLine(name=name, label=label(points[-1][1]), hue=hue, points=points, dashed=dashed, stepped=stepped),)


def rates(shown: Sequence[Sample]) -> tuple[ChartLine, ...]:
    """What arrives and what is processed, with what bounds it; in grey what devices would send if nobody held them."""
    return (
        *line("demand", "past", shown, lambda s: s.demand_per_s, named("demand")),
        *line("capacity", "caution", shown, lambda s: s.capacity_per_s, named("capacity"), dashed=True),
        *line("arriving", "ink", shown, lambda s: s.arrival_per_s, named("arriving")),
        *line("processed", "tide", shown, lambda s: s.departure_per_s, named("processed")),
    )


def recent(samples: Sequence[Sample]) -> tuple[Sample, ...]:
    """The samples of the last two minutes, at most one per second: a finer line would look the same."""
    if not samples:
        return ()
    last_s = samples[-1].at_s
    kept: list[Sample] = []
    for sample in samples:
        if sample.at_s < last_s - SPAN_S:
            continue
        if kept and math.floor(sample.at_s) == math.floor(kept[-1].at_s):
            kept.pop()
        kept.append(sample)
    return tuple(kept)


def end_s(shown: Sequence[Sample]) -> float:
    return shown[-1].at_s if shown else 0.0


def tops(options: ChartOptions) -> list[float]:
    """Where the vertical axis of each panel ends."""
    return [axis["max"] for axis in options["yAxis"]]


def named(name: str) -> Callable[[float], str]:
    return lambda value: f"{name} {number(value)}"


def fitted(name: str, value: str) -> str:
    """A label of one row where it fits beside the chart, else of two."""
    if len(name) + len(value) < LABEL_LETTERS_MAX:
        return f"{name} {value}"
    return f"{shortened(name, LABEL_LETTERS_MAX)}\n{value}"
