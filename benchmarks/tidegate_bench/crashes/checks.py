"""From the rows of all rounds to the checks."""

from collections.abc import Sequence
from typing import Any

from tidegate.report.checks import Check

Row = dict[str, Any]


def checks_of(rows: Sequence[Row], rounds: int) -> list[Check]:
    def total(name: str) -> int:
        return sum(row[name] for row in rows)

    return [
        Check.equal("rounds", len(rows), rounds),
        Check.equal("lost", total("lost"), 0),
        Check.equal("duplicated", total("duplicated"), 0),
        Check.equal("wrong_values", total("wrong_values"), 0),
        Check.equal("wrong_means", total("wrong_means"), 0),
        Check.equal("unrecovered", sum(bool(row["unrecovered"]) for row in rows), 0),
        Check.equal("rejected", sum(len(row["rejected"]) for row in rows), 0),
        Check.equal("wedged", total("wedged"), 0),
        Check.equal("silent", total("silent"), 0),
        # Else the fence and the known identities were never needed, and the lines above say little.
        Check.at_least("fence_needed", total("refused_commits"), 10),
        Check.at_least("dedup_needed", total("repeats"), 10),
    ]


def unfinished(why: str, slices: int) -> Row:
    """Of a round that could not be played to its end: whatever it was, nothing is known to move any more."""
    none = ("lost", "duplicated", "wrong_values", "wrong_means", "silent", "refused_commits", "repeats")
    return {
        **dict.fromkeys(none, 0),
        "wedged": slices,
        "rejected": [],
        "unrecovered": "",
        "broken": why,
        "healed_s": None,
    }


def ends_a_block(row: Row) -> bool:
    """Whether the installation is not fit for another round: what went wrong would spoil the next one's verdict."""
    return bool(row["lost"] or row["wedged"] or row["broken"] or row["healed_s"] is None)
