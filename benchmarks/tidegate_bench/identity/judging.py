"""From what clients saw, what others heard and what the log holds to a verdict per cell, and to the checks. Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from tidegate.report.checks import Check
from tidegate_bench.identity.cells import NATS, Cell
from tidegate_bench.identity.oracle import expected, may_speak

MATRIX, STORED = "matrix", "stored"
HEARD, RETAINED, LOG = "subscriber to #", "retained", "log"
AS_EXPECTED, WRONGLY_ACCEPTED, WRONGLY_REFUSED = "as expected", "wrongly accepted", "wrongly refused"
NOT_APPLICABLE = "not applicable"
_TELEMETRY = "telemetry/"

Row = dict[str, Any]


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What the client itself saw: what it was told last, whether everything it wanted was granted, or anything at all,
    and how many messages of others it heard."""

    told: str
    all_granted: bool = False
    any_granted: bool = False
    heard: int = 0


class Arrival(msgspec.Struct, frozen=True, kw_only=True):
    """A message that got as far as a subscriber or the log. The payload says which cell sent it, and who that was."""

    where: str
    broker: str
    topic: str
    sender: str
    cell: int

    @property
    def device(self) -> str:
        """Whose topic it is: the level behind telemetry; nobody's where it is none."""
        return self.topic.removeprefix(_TELEMETRY).split("/")[0] if self.topic.startswith(_TELEMETRY) else ""

    @property
    def is_forged(self) -> bool:
        return not may_speak(self.sender, self.device)


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    cell: Cell
    verdict: str
    told: str = ""
    is_told_rightly: bool = True
    reached: tuple[str, ...] = ()
    why: str = ""

    def row(self) -> Row:
        cell, must = self.cell, expected(self.cell)
        names: Row = {
            "part": MATRIX,
            "cell": cell.number,
            "method": cell.method,
            "transport": cell.transport.name,
            "broker": cell.broker,
            "case": cell.case,
            "verdict": self.verdict,
        }
        if self.verdict == NOT_APPLICABLE:
            return {**names, "why": self.why}
        return {
            **names,
            "expected": "accepted" if must.is_allowed else f"refused: {' or '.join(must.told)}",
            "told": self.told,
            "told_rightly": self.is_told_rightly,
            "reached": ", ".join(self.reached),
        }


def judged(cells: Sequence[Cell], seen: Mapping[int, Seen], arrivals: Iterable[Arrival]) -> list[Verdict]:
    """A verdict per cell; one that was not played, though it can be, was refused what it wanted."""
    by_cell: defaultdict[int, list[Arrival]] = defaultdict(list)
    for arrival in arrivals:
        by_cell[arrival.cell].append(arrival)
    return [_judged(cell, seen.get(cell.number), by_cell[cell.number]) for cell in cells]


def _judged(cell: Cell, seen: Seen | None, arrivals: Sequence[Arrival]) -> Verdict:
    if cell.not_applicable:
        return Verdict(cell=cell, verdict=NOT_APPLICABLE, why=cell.not_applicable)
    if seen is None:
        return Verdict(cell=cell, verdict=WRONGLY_REFUSED, told="it was not played", is_told_rightly=False)
    must = expected(cell)
    if must.is_allowed:
        reached = {one.where for one in arrivals if not one.is_forged}
        wanted = {HEARD, LOG} if cell.broker == NATS else {HEARD}
        is_done = seen.all_granted and wanted <= reached
        verdict, is_told_rightly = AS_EXPECTED if is_done else WRONGLY_REFUSED, True
    else:
        reached = {one.where for one in arrivals if one.is_forged}
        is_done = bool(seen.any_granted or seen.heard or reached)
        verdict, is_told_rightly = WRONGLY_ACCEPTED if is_done else AS_EXPECTED, seen.told in must.told
    return Verdict(
        cell=cell,
        verdict=verdict,
        told=seen.told,
        is_told_rightly=is_told_rightly,
        reached=tuple(sorted(reached)),
    )


def stored_row(cells: Sequence[Cell], arrivals: Iterable[Arrival]) -> Row:
    """What the log holds: readings that must be there, those that are missing, and forged ones; and beside it what a
    subscriber to everything heard that nobody may have sent."""
    listed = list(arrivals)
    log = [one for one in listed if one.where == LOG]
    own = {one.cell for one in log if not one.is_forged}
    allowed = [
        cell.number for cell in cells if cell.broker == NATS and not cell.not_applicable and expected(cell).is_allowed
    ]
    return {
        "part": STORED,
        "readings": len(log),
        "cells_that_must_store": len(allowed),
        "cells_missing": sum(number not in own for number in allowed),
        "forged": sum(one.is_forged for one in log),
        "forged_heard": sum(one.is_forged for one in listed if one.where != LOG),
    }


def matrix_checks(rows: Sequence[Row]) -> list[Check]:
    """Counted over all rows of the matrix, and of the log."""
    matrix = [row for row in rows if row["part"] == MATRIX]
    verdicts = Counter(row["verdict"] for row in matrix)
    (stored,) = (row for row in rows if row["part"] == STORED)
    told_otherwise = sum(not row.get("told_rightly", True) for row in matrix)
    return [
        Check.equal("wrongly_accepted", verdicts[WRONGLY_ACCEPTED], 0),
        Check.equal("wrongly_refused", verdicts[WRONGLY_REFUSED], 0),
        Check.equal("refusals_told_otherwise", told_otherwise, 0),
        Check.at_least("cells_played", len(matrix) - verdicts[NOT_APPLICABLE], 1),
        Check.equal("forged_readings_stored", stored["forged"], 0),
        Check.equal("own_readings_missing", stored["cells_missing"], 0),
        Check.at_least("readings_stored", stored["readings"], 1),
    ]
