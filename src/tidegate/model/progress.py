"""What a processing node says of itself while it works, for everybody who acts on it."""

from typing import Any

import msgspec

# Ten seconds of the quickest batches: who reads them looks more often than that. All of them are said each time.
BATCHES_SAID = 40


class SliceProgress(msgspec.Struct, frozen=True, kw_only=True):
    """One slice since the node took it: how far the tables have it, and what its rows cost."""

    committed: int  # a position (model/positions.py)
    epoch: int = 0
    rows: int = 0
    bytes: int = 0
    cost_us_per_row: float = 0.0
    age_s: float = 0.0  # of the oldest message in the last commit
    lag: int = 0  # what the log had beyond the last batch


class WorkTotals(msgspec.Struct, frozen=True, kw_only=True):
    """Since the node started."""

    rows: int = 0
    repeats: int = 0
    batches: int = 0


class RowsAtLimit(msgspec.Struct, frozen=True, kw_only=True):
    """Rows and seconds of the batches that show what the node can do: those that a limit cut, and long ones."""

    rows: int = 0
    seconds: float = 0.0


class Batch(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """One batch that had rows. An array on the wire: names would be the larger part of what is said many times."""

    at_s: float  # when it ended (Unix time)
    rows: int
    seconds: float
    at_limit: bool = False  # the limit of rows or bytes cut it: more was waiting


class NodeProgress(msgspec.Struct, frozen=True, kw_only=True):
    """``query`` is Spark's own account of its last batch, in its words: for people, not for policies."""

    node: str
    at_s: float = msgspec.field(default=0.0, name="at")  # when this was said (Unix time)
    left: bool = False  # it has stopped in good order: nobody need miss it
    pid: int = 0
    memory_mib: int = 0
    problem: str | None = None  # why the query was started anew
    alarm: str | None = None  # what does not work at the moment, though the query runs
    ready: bool = True  # it has finished a batch; before that it only warms up
    query: dict[str, Any] = {}
    # When it committed last (Unix time), 0 where it has not.
    committed_at_s: float = msgspec.field(default=0.0, name="committed_at")
    totals: WorkTotals = WorkTotals()
    limit: RowsAtLimit = RowsAtLimit()
    full: bool = False  # the batch under way has as many rows as one may have: more is waiting
    slices: dict[int, SliceProgress] = {}
    batches: tuple[Batch, ...] = ()  # the newest ones, oldest first
    rejects: dict[str, int] = {}  # readings that the side table has, by reason, since the node started
    rejected_devices: tuple[tuple[str, str, int], ...] = ()  # those with most of them: device, reason, how many
