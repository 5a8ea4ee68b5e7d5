"""Whether a query still gets something done. No clock and no IO: whoever looks brings the time.

A sign of life is a batch that was committed, a part of one that was written, an idle poll that was answered, or an
error that ended the query: what hangs gives none of them. How long to wait for the next one follows the batches, so
that a node with much to do is not taken for one that hangs:

    trigger + max(floor, 5 · longest recent batch, 5 · rows planned · seconds per row)

Seconds per row are the least that the tasks of recent batches were busy. A task has a fixed cost as well, so that is
never less than what a row really takes: a small batch makes a large one look longer, not shorter. The first batch of a
query starts processes and loads what tables know, and nothing is known of it: it has ten times the floor.
"""

from collections import deque

FOLLOWED = 5.0
FIRST = 10.0
RECENT = 32
# Time counts as silence only while somebody looks: a whole node that was frozen, keeper and all, wakes and goes on.
LOOK_S_MAX = 6.0


class Pulse:
    """``seconds_per_row`` is what a row is said to take before a batch has shown it."""

    def __init__(self, floor_s: float, trigger_s: float = 0.0, seconds_per_row: float = 0.0) -> None:
        self._floor_s = floor_s
        self._trigger_s = trigger_s
        self._told_s_per_row = seconds_per_row
        self._batches_s: deque[float] = deque(maxlen=RECENT)
        self._rows_s: deque[float] = deque(maxlen=RECENT)
        self._has_beaten = False
        self._silent_s = 0.0
        self._looked_s: float | None = None

    def started(self) -> None:
        """A query begins: its first batch is yet to come."""
        self._has_beaten = False
        self._silent_s = 0.0

    def beat(self) -> None:
        """The query has got something done."""
        self._has_beaten = True
        self._silent_s = 0.0

    def worked(self) -> None:
        """A part of the batch under way is done, though not yet the batch: nothing is known of how long that takes."""
        self._silent_s = 0.0

    def took(self, batch_s: float) -> None:
        """How long a batch took that had rows."""
        self._batches_s.append(batch_s)

    def was_busy(self, rows: int, busy_s: float) -> None:
        """How long the tasks of a batch worked on its rows, one after the other."""
        if rows > 0:
            self._rows_s.append(busy_s / rows)

    def silent_s(self, now_s: float) -> float:
        """Seconds without a sign of life; call it often."""
        if self._looked_s is not None:
            self._silent_s += min(max(0.0, now_s - self._looked_s), LOOK_S_MAX)
        self._looked_s = now_s
        return self._silent_s

    def patience_s(self, rows_planned: int) -> float:
        """How long a silence may be while a batch of so many rows is under way."""
        row_s = max(self._told_s_per_row, min(self._rows_s, default=0.0))
        work_s = FOLLOWED * max(max(self._batches_s, default=0.0), rows_planned * row_s)
        return self._trigger_s + max(self._floor_s * (1.0 if self._has_beaten else FIRST), work_s)
