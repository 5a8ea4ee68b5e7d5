"""The verdicts of one installation, round by round: what is new in each."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from tidegate_bench.crashes import oracle
from tidegate_bench.crashes.oracle import Named, Row, Window
from tidegate_bench.crashes.records import Identity, Known


class Findings(msgspec.Struct, frozen=True, kw_only=True):
    """Of one round. ``excused`` are lost to a store that was set back, and to nothing else."""

    windows: tuple[Window, ...] = ()
    acknowledged: int = 0
    stored: int = 0
    lost: tuple[Identity, ...] = ()
    excused: tuple[Identity, ...] = ()
    duplicated: tuple[Identity, ...] = ()
    wrong: tuple[Identity, ...] = ()
    wrong_means: tuple[tuple[str, int], ...] = ()
    missing: int = 0  # with those of earlier rounds
    slice_of: dict[str, int] = {}

    def unnamed(self, named: Named) -> list[Identity]:
        """Whatever is missing has to be named, whoever lost it."""
        return oracle.unnamed((*self.lost, *self.excused), self.missing, self.slice_of, named)

    def row(self) -> dict[str, Any]:
        return {
            "windows": msgspec.to_builtins(self.windows),
            "acknowledged": self.acknowledged,
            "stored": self.stored,
            "lost": len(self.lost),
            "lost_announced": len(self.excused),
            "duplicated": len(self.duplicated),
            "wrong_values": len(self.wrong),
            "wrong_means": len(self.wrong_means),
            "examples": oracle.examples([*self.lost, *self.duplicated, *self.wrong]),
        }


class Book:
    """What earlier rounds of the same installation found is not found again."""

    def __init__(self, window_s: int) -> None:
        self._window_us = window_s * oracle.MICROS
        self._missing: set[Identity] = set()
        self._duplicated: Counter[Identity] = Counter()
        self._wrong: Counter[Identity] = Counter()
        self._wrong_means: set[tuple[str, int]] = set()
        self._rejected = 0
        self._sent: dict[str, Any] = {}

    def look(self, known: Known, rows: Sequence[Row], means: Sequence[Row], found: Findings) -> Findings:
        """As things stand now."""
        verdict = oracle.judge(known, rows)
        lost = [identity for identity in verdict.lost if identity not in self._missing]
        excused = oracle.excusable(lost, known, found.windows)
        return msgspec.structs.replace(
            found,
            acknowledged=verdict.acknowledged,
            stored=verdict.stored,
            lost=tuple(identity for identity in lost if identity not in excused),
            excused=tuple(sorted(excused)),
            duplicated=tuple((Counter(verdict.duplicated) - self._duplicated).elements()),
            wrong=tuple((Counter(verdict.wrong) - self._wrong).elements()),
            wrong_means=tuple(
                key for key in oracle.wrong_means(rows, means, self._window_us) if key not in self._wrong_means
            ),
            missing=len(verdict.lost),
            slice_of={row["device"]: row["slice"] for row in rows},
        )

    def close(self, found: Findings) -> None:
        self._missing |= {*found.lost, *found.excused}
        self._duplicated.update(found.duplicated)
        self._wrong.update(found.wrong)
        self._wrong_means |= set(found.wrong_means)

    def newly_rejected(self, reasons: list[str]) -> list[str]:
        fresh, self._rejected = reasons[self._rejected :], len(reasons)
        return fresh

    def newly_sent(self, summary: dict[str, Any]) -> dict[str, Any]:
        fresh = {name: count - self._sent.get(name, 0) for name, count in summary.items()}
        self._sent = summary
        return fresh
