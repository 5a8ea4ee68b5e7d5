"""How the tables are, and who looks after them: what the maintainer says on the control bus."""

import msgspec

# A maintainer speaks several times within this, also while it works or has nothing to do.
SILENT_S = 60.0


class TableHealth(msgspec.Struct, frozen=True, kw_only=True):
    """One table as its newest version stands. ``bytes`` and ``rows`` are those of the active files."""

    active_files: int
    log_entries: int
    bytes: int
    rows: int
    dates: int  # partitions that have rows
    oldest_date: str | None = None  # the first day (arrival, UTC) that is still there
    vacuumed_s: float | None = None  # when that was done last (Unix time): whoever comes next goes on from there
    damaged_files: int = 0  # active, and missing or unreadable, as far as it is known


class MaintenanceRun(msgspec.Struct, frozen=True, kw_only=True):
    """What one round of maintenance did to a table."""

    table: str
    at_s: float
    seconds: float
    files_merged: int = 0
    files_written: int = 0
    files_removed: int = 0  # by vacuum
    log_entries_removed: int = 0
    dates_dropped: int = 0  # by retention
    problem: str | None = None


class TablesState(msgspec.Struct, frozen=True, kw_only=True):
    """What the maintainer says of itself and of all tables."""

    maintainer: str
    at_s: float
    tables: dict[str, TableHealth] = {}
    runs: tuple[MaintenanceRun, ...] = ()  # the newest ones, oldest first
    running: str | None = None  # the table being worked on
    next_s: float = 0.0  # when the next round begins (Unix time)
    alarms: tuple[str, ...] = ()
