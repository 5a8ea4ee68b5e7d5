"""What the demo says: lines on a terminal or in a log, the same story as the dashboard's, never silent for long."""

import time
from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tidegate.demo.script import slowness
from tidegate.demo.verdict import Figures, table
from tidegate.model.decisions import Decision
from tidegate.model.view import Sample, StateSummary, seconds

# The story is looked at four times a second: with this, never two seconds pass without a line.
EVERY_S = 1.75
_BARS = "▁▂▃▄▅▆▇█"
_STYLES = {"good": "green", "caution": "dark_orange3", "danger": "bold red"}
SPARK_SAMPLES = 24


class Story:
    """One voice for start, acts and verdict. Knows nothing but the console."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._said_s = time.monotonic()

    def say(self, text: str, style: str = "") -> None:
        self.console.print(text, style=style or None, markup=False, highlight=False)
        self._said_s = time.monotonic()

    def heading(self, text: str) -> None:
        self.console.print()
        self.say(text, "bold")

    @property
    def quiet_s(self) -> float:
        return time.monotonic() - self._said_s

    def state(self, state: StateSummary) -> None:
        self.say(f"  {state.severity}: {state.sentence}", _STYLES[state.severity])

    def measured(self, second: float, samples: Sequence[Sample], severity: str) -> None:
        """One line of figures with the trend of the age."""
        now = samples[-1]
        held = f"every {seconds(now.interval_s)}" if now.interval_s else "at default"
        trend = sparkline([sample.age_s for sample in samples[-SPARK_SAMPLES:]])
        line = (
            f"  {second:4.0f} s  {now.devices:4,} devices {held:<12} {now.arrival_per_s:6,.0f} in "
            f"{now.departure_per_s:5,.0f} out msg/s  {now.waiting:7,} waiting  age {seconds(now.age_s):>6} {trend}"
        )
        self.say(line, _STYLES[severity] if severity != "good" else "")

    def held(self, clients: int, publishes: int) -> None:
        """Only where somebody is."""
        if clients or publishes:
            self.say(
                f"        {clients:,} clients are held in the gateway, {publishes:,} of their publishes wait there"
            )

    def decision(self, decision: Decision, *, whole: bool) -> None:
        if not whole:
            self.say(f"        {decision.sentence}", "cyan")
            return
        reason = decision.reason
        measurements = ", ".join(f"{name} {value:,.4g}" for name, value in reason.measurements.items())
        self.console.print(f"  [bold cyan]Decision:[/] {escape(decision.sentence)}", highlight=False)
        self.console.print(f"    saw       {escape(measurements)}", highlight=False)
        self.console.print(f"    rule      {escape(reason.rule)}", highlight=False)
        self.console.print(f"    rejected  {escape(reason.rejected)}", highlight=False)
        self._said_s = time.monotonic()

    def verdict(self, without: Figures, protected: Figures) -> None:
        self.comparison("Verdict: the same flood, the same seed", table(without, protected))
        self.helped("data", without.age_s_mean, protected.age_s_mean)

    def comparison(self, title: str, rows: Iterable[tuple[str, str, str]]) -> None:
        self.heading(title)
        shown = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
        shown.add_column("")
        shown.add_column("without", justify="right")
        shown.add_column("with", justify="right")
        for row in rows:
            shown.add_row(*row)
        self.console.print(shown)
        self.say(slowness())

    def helped(self, what: str, without_s: float, protected_s: float) -> None:
        """Whether it did, from the mean ages."""
        if protected_s < without_s:
            factor = without_s / max(protected_s, 1e-3)
            self.say(f"Protection kept {what} {factor:.1f} times fresher while Spark stayed busy.", "bold green")
        else:
            self.say(f"Protection did not help in this run: {what} was as old with it as without it.", "bold red")

    def table(self, title: str, rows: Iterable[tuple[str, str]]) -> None:
        self.heading(title)
        shown = Table(box=None, show_header=False, pad_edge=False)
        for what, value in rows:
            shown.add_row(what, value)
        self.console.print(shown)

    def wait(self, purpose: str, parts: Iterable[str]) -> None:
        """A ticking line for what has been ready so far, every two seconds of silence."""
        if self.quiet_s >= EVERY_S:
            self.say(f"  {purpose}: waiting for {', '.join(parts)}")


def sparkline(values: Sequence[float]) -> str:
    """Bars from zero to the highest value; a row of low ones where nothing happens."""
    top = max([*values, 1.0])
    return "".join(_BARS[min(len(_BARS) - 1, int(value / top * len(_BARS)))] for value in values)
