"""What devices know against what the tables hold: lost, stored twice, stored as something else. No IO.

A reading that is stored and was never acknowledged is no fault: its acknowledgement may have been lost on the way.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from tidegate_bench.crashes.records import Identity, Known

EXAMPLES_MAX = 5
TOPIC = "telemetry"
MICROS = 1_000_000

Row = Mapping[str, Any]


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """``lost`` were acknowledged and are not stored; ``duplicated`` counts rows beyond the first of an identity;
    ``wrong`` are stored as something that their device did not send."""

    acknowledged: int
    stored: int
    lost: tuple[Identity, ...]
    duplicated: tuple[Identity, ...]
    wrong: tuple[Identity, ...]


def judge(known: Known, rows: Iterable[Row]) -> Verdict:
    """``rows`` have the columns of the readings' table, with times in microseconds."""
    counts: Counter[Identity] = Counter()
    wrong = []
    for row in rows:
        identity = Identity(row["device"], row["boot"], row["seq"])
        counts[identity] += 1
        sent = known.sent.get(identity)
        if sent is None or _expected(identity, sent) != {name: row[name] for name in COLUMNS}:
            wrong.append(identity)
    return Verdict(
        acknowledged=len(known.acknowledged),
        stored=len(counts),
        lost=tuple(sorted(identity for identity in known.acknowledged if identity not in counts)),
        duplicated=tuple(sorted(identity for identity, count in counts.items() for _ in range(count - 1))),
        wrong=tuple(sorted(wrong, key=str)),
    )


COLUMNS = ("topic", "time", "value", "count", "min", "max", "first", "last", "extra")


def _expected(identity: Identity, sent: Mapping[str, Any]) -> dict[str, Any]:
    """The row that a payload has to become."""
    several = sent.get("count", 1) > 1
    return {
        "topic": f"{TOPIC}/{identity.device}",
        "time": round(sent["time"] * MICROS),
        "value": float(sent["value"]),
        "count": sent.get("count", 1),
        "min": float(sent["min"]) if several else None,
        "max": float(sent["max"]) if several else None,
        "first": round(sent["first"] * MICROS) if several else None,
        "last": round(sent["last"] * MICROS) if several else None,
        "extra": None,
    }


def wrong_means(rows: Iterable[Row], partials: Iterable[Row], window_us: int) -> list[tuple[str, int]]:
    """Devices and windows whose partial means do not add up to the readings that are stored."""
    expected: Counter[tuple[str, int, str]] = Counter()
    for row in rows:
        key = (row["device"], row["time"] // window_us * window_us)
        expected[*key, "count"] += row["count"]
        expected[*key, "sum"] += round(row["value"] * MICROS) * row["count"]
    for part in partials:
        key = (part["device"], part["window_start"])
        expected[*key, "count"] -= part["count"]
        expected[*key, "sum"] -= int(part["sum_micro"])
    return sorted({(device, start) for (device, start, _), difference in expected.items() if difference})


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """From when a store was set back, and when it was gone: acknowledged in between, a reading may be lost."""

    from_s: float
    to_s: float


def excusable(lost: Iterable[Identity], known: Known, windows: Iterable[Window]) -> set[Identity]:
    """The lost ones that were first acknowledged while a store grew that was set back afterwards."""
    spans = list(windows)
    return {
        identity
        for identity in lost
        if any(span.from_s <= known.acknowledged[identity][0] <= span.to_s for span in spans)
    }


class Named(msgspec.Struct, frozen=True, kw_only=True):
    """What alarms said is missing: slices whose log was set back, ranges of a device's sequences, and how many in all.

    Of very many ranges only the newest are listed, so a sum that is right names those that are not.
    """

    slices: frozenset[int] = frozenset()
    ranges: tuple[tuple[str, int, int, int], ...] = ()  # device, boot, first and last sequence
    missing: int = 0

    def names(self, identity: Identity, slice_: int | None) -> bool:
        return slice_ in self.slices or any(
            (device, boot) == identity[:2] and low <= identity.seq <= high for device, boot, low, high in self.ranges
        )


def unnamed(lost: Sequence[Identity], missing: int, slice_of: Mapping[str, int], named: Named) -> list[Identity]:
    """The lost ones of which no alarm spoke; ``missing`` is how many are missing by now, earlier ones among them."""
    if named.missing and named.missing == missing:
        return []
    return [identity for identity in lost if not named.names(identity, slice_of.get(identity.device))]


def examples(identities: Iterable[Identity]) -> list[str]:
    return ["/".join(map(str, identity)) for identity in list(identities)[:EXAMPLES_MAX]]
