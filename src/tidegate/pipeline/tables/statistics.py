"""What readers skip files by: the lowest and the highest value of each column, and how many are null."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

Statistics = dict[str, Any]  # as the Delta log has them
# Every entry and every checkpoint of the log carries them, and every handle has them in memory: a text is cut off.
TEXT_MAX = 64
_LAST_CHARACTER = "\U0010ffff"


def statistics_of(rows: pa.Table) -> Statistics:
    """Of one file's rows. Every column is counted: a column that is not would be taken for all null."""
    lows, highs = {}, {}
    for field in rows.schema:
        if pa.types.is_integer(field.type) or pa.types.is_floating(field.type):
            bounds = pc.min_max(rows[field.name])
            lows[field.name], highs[field.name] = bounds["min"].as_py(), bounds["max"].as_py()
        elif pa.types.is_string(field.type):
            bounds = pc.min_max(rows[field.name])
            low, high = bounds["min"].as_py(), bounds["max"].as_py()
            lows[field.name], highs[field.name] = low and low[:TEXT_MAX], high and _above(high)
        elif pa.types.is_timestamp(field.type):
            # The log keeps milliseconds: round outwards, so that no row falls outside its file's bounds.
            bounds = pc.min_max(rows[field.name].cast(pa.int64()))
            low, high = bounds["min"].as_py(), bounds["max"].as_py()
            lows[field.name] = None if low is None else _iso(low // 1000)
            highs[field.name] = None if high is None else _iso(-(-high // 1000))
    return {
        "numRecords": rows.num_rows,
        "minValues": {name: value for name, value in lows.items() if value is not None},
        "maxValues": {name: value for name, value in highs.items() if value is not None},
        "nullCount": {name: rows[name].null_count for name in rows.column_names},
    }


def together(parts: Sequence[Statistics]) -> Statistics:
    """Of a file that was written in parts of the same columns."""
    nulls: dict[str, int] = {}
    lows: dict[str, Any] = {}
    highs: dict[str, Any] = {}
    for part in parts:
        nulls = {name: nulls.get(name, 0) + count for name, count in part["nullCount"].items()}
        lows |= {name: min(low, lows.get(name, low)) for name, low in part["minValues"].items()}
        highs |= {name: max(high, highs.get(name, high)) for name, high in part["maxValues"].items()}
    rows = sum(part["numRecords"] for part in parts)
    return {"numRecords": rows, "minValues": lows, "maxValues": highs, "nullCount": nulls}


def written(statistics: Statistics) -> str:
    """As the log carries them. Every character as itself: delta-rs takes an escaped one above U+1FFFF for another."""
    return json.dumps(statistics, ensure_ascii=False)


def _above(text: str) -> str:
    """A short text that is not below this one."""
    if len(text) <= TEXT_MAX:
        return text
    kept = text[:TEXT_MAX].rstrip(_LAST_CHARACTER)
    if not kept:
        return text  # nothing shorter is above it
    following = ord(kept[-1]) + 1
    return kept[:-1] + chr(0xE000 if following == 0xD800 else following)  # there are no surrogates in a text


def _iso(milliseconds: int) -> str:
    stamp = datetime.fromtimestamp(milliseconds // 1000, UTC)
    return f"{stamp:%Y-%m-%dT%H:%M:%S}.{milliseconds % 1000:03d}Z"
