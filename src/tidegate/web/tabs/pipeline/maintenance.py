"""The tables and who looks after them, pure: how large they are, what was done last, when the next round comes.

What a maintainer said long ago is shown with its age, and never as if it were so now.
"""

from tidegate.model.tables import SILENT_S, MaintenanceRun, TableHealth, TablesState
from tidegate.model.view import duration, seconds
from tidegate.web.components.table import Table
from tidegate.web.values.words import UNKNOWN, bytes_of, number

RUNS_SHOWN = 8
NEVER = "No maintainer has said anything yet: nobody looks after the tables."


def is_silent(said: TablesState, now_s: float) -> bool:
    return now_s - said.at_s > SILENT_S


def upkeep_sentence(said: TablesState | None, now_s: float) -> str:
    """Who looks after the tables, when that was last, when it will be next."""
    if said is None:
        return NEVER
    if is_silent(said, now_s):
        silent = duration(now_s - said.at_s)
        return f"No maintainer has said anything for {silent}: the tables are shown as they were then."
    done = (
        f"The tables were maintained {ago(said.runs[-1].at_s, now_s)}" if said.runs else "No maintenance was done yet"
    )
    return f"{done}, {next_words(said, now_s)}."


def alarms(said: TablesState | None, now_s: float) -> tuple[str, ...]:
    """What is wrong with the tables, or was when somebody last said so; of each table's rounds only the last counts."""
    if said is None:
        return ()
    then = f" (said {ago(said.at_s, now_s)})" if is_silent(said, now_s) else ""
    failed = (
        f"Maintenance of {run.table} failed: {run.problem}"
        for run in last_runs(said)
        if run.problem is not None and run.problem not in said.alarms
    )
    return tuple(f"{alarm}{then}" for alarm in (*said.alarms, *failed))


def last_runs(said: TablesState) -> list[MaintenanceRun]:
    """Of each table the last one: what failed before and works again is no alarm."""
    return list({run.table: run for run in said.runs}.values())


def next_words(said: TablesState, now_s: float) -> str:
    if said.running is not None:
        return f"{said.running} is being worked on"
    if not said.next_s:
        return "when it comes next is not known"
    if said.next_s <= now_s:
        late_s = now_s - said.next_s
        return "the next time is now" if late_s <= SILENT_S else f"the next time is {duration(late_s)} late"
    return f"next in {duration(said.next_s - now_s)}"


def health(said: TablesState | None) -> Table:
    columns = ("Table", "Rows", "Bytes", "Active files", "Log entries", "Days", "Oldest day")
    return Table(
        columns=columns,
        numeric=frozenset(columns[1:]),
        rows=tuple((name, *_health(one)) for name, one in sorted(said.tables.items())) if said else (),
        empty=NEVER if said is None else "The maintainer has not looked at a table yet.",
    )


def _health(one: TableHealth) -> tuple[str, ...]:
    counts = number(one.active_files), number(one.log_entries), number(one.dates)
    return number(one.rows), bytes_of(one.bytes), *counts, one.oldest_date or "no rows"


def runs(said: TablesState | None, now_s: float) -> Table:
    """What was done, newest first. Of rounds in which nothing was to be done only a table's last is worth a row."""
    last = last_runs(said) if said else []
    shown = [one for one in said.runs if one in last or one.problem is not None or _done(one)] if said else []
    newest = shown[: -RUNS_SHOWN - 1 : -1]
    return Table(
        columns=("When", "Table", "What it did", "Took"),
        numeric=frozenset({"Took"}),
        rows=tuple((ago(one.at_s, now_s), one.table, run_words(one), seconds(one.seconds)) for one in newest),
        empty="No maintenance has been done yet." if said else NEVER,
    )


def run_words(run: MaintenanceRun) -> str:
    """What one round did, and what went wrong in it."""
    done = _done(run)
    words = ", ".join(done) or "nothing was to be done"
    if run.problem is None:
        return words
    return f"■ {run.problem}" + (f" ({words})" if done else "")


def _done(run: MaintenanceRun) -> list[str]:
    found = [
        f"merged {number(run.files_merged)} files into {number(run.files_written)}" if run.files_merged else "",
        f"removed {number(run.files_removed)} old files" if run.files_removed else "",
        f"removed {number(run.log_entries_removed)} log entries" if run.log_entries_removed else "",
        f"dropped {number(run.dates_dropped)} {'day' if run.dates_dropped == 1 else 'days'}"
        if run.dates_dropped
        else "",
    ]
    return [part for part in found if part]


def values(said: TablesState | None, now_s: float) -> tuple[tuple[str, str], ...]:
    if said is None:
        return ()
    return (
        ("Maintainer", said.maintainer),
        ("It spoke", ago(said.at_s, now_s)),
        ("It works on", said.running or "nothing"),
        ("Next maintenance", _next(said, now_s)),
    )


def _next(said: TablesState, now_s: float) -> str:
    if not said.next_s:
        return UNKNOWN
    return (
        f"in {duration(said.next_s - now_s)}" if said.next_s > now_s else f"was due {duration(now_s - said.next_s)} ago"
    )


def ago(at_s: float, now_s: float) -> str:
    """Clocks of two machines may differ by a little: nothing was done in the future."""
    return f"{duration(max(0.0, now_s - at_s))} ago"
