"""``tidegate ledger watch``: whether the tables have what gateways acknowledged, while the system runs.

If nobody does the comparing yet (the lease says who), this does; else it shows what that one finds.
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer
from rich.console import Group
from rich.live import Live
from rich.text import Text

from tidegate.bus.client import Bus
from tidegate.bus.documents import COMPLETENESS, LEDGER
from tidegate.bus.journals import JournalReader
from tidegate.model.errors import BrokerUnavailableError
from tidegate.model.installation import Installation
from tidegate.model.ledger import CompletenessState
from tidegate.model.ledger_words import summary_of
from tidegate.report.checks import Check, Report
from tidegate.report.json_form import to_json
from tidegate.report.printing import print_report
from tidegate.report.tables import console_on, rows_table

if TYPE_CHECKING:
    from tidegate.pipeline.completeness.checker import Completeness

NAME = "ledger-watch"
LOOK_S = 1.0
ONCE_S_MAX = 90.0
HOURS_SHOWN = 12

Show = Callable[[CompletenessState], None]


class Watched:
    """One look after the other, own ones or another's."""

    def __init__(self, installation: Installation, checker: "Completeness") -> None:
        self._checker = checker
        self._bus = Bus(installation.control_urls, name=NAME)

    def look(self) -> CompletenessState | None:
        """What is known by now; None while nothing is."""
        self._checker.step(time.time())
        if self._checker.holder == NAME:
            return self._checker.state
        return self._bus.get(COMPLETENESS)

    def reports(self) -> int:
        """How many there are in the journal."""
        return JournalReader(self._bus, LEDGER).ends().last

    def close(self) -> None:
        self._checker.stop(time.time(), left=True)
        self._bus.close()


@contextmanager
def opened(installation: Installation) -> Iterator[Watched]:
    from tidegate.pipeline.completeness.checker import Completeness  # noqa: PLC0415 - slow to import

    watched = Watched(installation, Completeness(installation, name=NAME))
    try:
        yield watched
    finally:
        watched.close()


def watch(installation: Installation, *, as_json: bool) -> None:
    """Until it is interrupted."""
    with opened(installation) as watched, _showing(as_json=as_json) as show:
        shown: CompletenessState | None = None
        while True:
            try:
                state = watched.look()
            except BrokerUnavailableError as error:
                typer.echo(str(error), err=True)
                state = shown
            if state is not None and state != shown:
                show(state)
                shown = state
            time.sleep(LOOK_S)


def once(installation: Installation, *, as_json: bool) -> int:
    """Until it is known what became of everything reported so far. The exit status."""
    began_s = time.monotonic()
    with opened(installation) as watched:
        wanted = watched.reports()
        state = watched.look()
        while (state is None or state.settled < wanted) and time.monotonic() - began_s < ONCE_S_MAX:
            time.sleep(LOOK_S)
            state = watched.look()
    report = report_of(state, wanted, time.monotonic() - began_s)
    print_report(report, as_json=as_json)
    if state is not None and not as_json:
        for hole in state.holes:
            typer.echo(f"Missing: {hole.sentence}.")
    return report.exit_status


def report_of(state: CompletenessState | None, wanted: int, seconds: float) -> Report:
    missing = sum(hour.missing for hour in state.hours) if state is not None else 0
    undecided = max(0, wanted - state.settled) if state is not None else wanted
    checks = [Check.equal("missing", missing, 0), Check.equal("undecided_reports", undecided, 0)]
    return Report("ledger watch", rows_of(state) if state is not None else [], checks, round(seconds, 3))


def rows_of(state: CompletenessState) -> list[dict[str, int | str]]:
    """Newest first."""
    return [
        {
            "hour (UTC)": time.strftime("%Y-%m-%d %H:00", time.gmtime(hour.hour_s)),
            "acknowledged": hour.acknowledged,
            "stored": hour.stored,
            "rejected": hour.rejected,
            "missing": hour.missing,
            "not yet": hour.waiting,
            "no identity": hour.nameless,
            "unwatched": hour.unwatched,
        }
        for hour in reversed(state.hours[-HOURS_SHOWN:])
    ]


@contextmanager
def _showing(*, as_json: bool) -> Iterator[Show]:
    """On a terminal in place; elsewhere what is new, and for programs a line of JSON per look."""
    console = console_on(sys.stdout)
    if as_json:
        yield lambda state: typer.echo(to_json(state))
    elif console.is_terminal:
        with Live(console=console, auto_refresh=False) as live:
            yield lambda state: live.update(picture(state, time.time()), refresh=True)
    else:
        yield _Lines()


class _Lines:
    """The sentence when it changes, and each hole once."""

    def __init__(self) -> None:
        self._said = ""
        self._holes: set[str] = set()

    def __call__(self, state: CompletenessState) -> None:
        sentence = summary_of(state, time.time()).sentence
        if sentence != self._said:
            typer.echo(sentence)
            self._said = sentence
        for hole in state.holes:
            if hole.sentence not in self._holes:
                typer.echo(f"Missing: {hole.sentence}.")
                self._holes.add(hole.sentence)


def picture(state: CompletenessState, now_s: float) -> Group:
    summary = summary_of(state, now_s)
    colour = {"good": "green", "caution": "yellow", "danger": "bold red"}[summary.severity]
    holes = [Text(f"Missing: {hole.sentence}.") for hole in reversed(state.holes)]
    by = Text(f"Compared by {state.checker}, {state.reports:,} reports read.", style="dim")
    return Group(Text(summary.sentence, style=colour), rows_table(rows_of(state)), *holes, by)
