"""The vectorised ledger says what a plain loop over sets and counters says."""

from collections import Counter

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tidegate.pipeline.tables.ledger import EXAMPLES_MAX, Identity, check

SCHEMA = pa.schema([("device", pa.string()), ("boot", pa.int64()), ("seq", pa.int64())])
DEVICES = st.sampled_from(["a", "b", "ab", "device-ä", ""])
# Small numbers make coincidences; large ones make the packed keys too wide for one integer.
NUMBERS = st.integers(0, 3) | st.sampled_from([2**31, 2**62 - 1, 2**62])
IDENTITIES = st.tuples(DEVICES, NUMBERS, NUMBERS)
ROWS = IDENTITIES | st.tuples(DEVICES, st.none(), st.none())


def table(rows: list[tuple], cut: int) -> pa.Table:
    """In two chunks, as tables come from several files."""
    parts = [
        pa.table([list(column) for column in zip(*part, strict=True)] or [[], [], []], schema=SCHEMA)
        for part in (rows[:cut], rows[cut:])
    ]
    return pa.concat_tables(parts)


@given(st.lists(IDENTITIES, max_size=40), st.lists(ROWS, max_size=40), st.integers(0, 40))
def test_counts_and_examples(acks: list[tuple], rows: list[tuple], cut: int) -> None:
    verdict = check(table(acks, cut), table(rows, cut))

    acked = set(acks)
    stored = Counter(row for row in rows if row[1] is not None)
    lost = acked - set(stored)
    twice = {identity for identity, count in stored.items() if count > 1}
    assert verdict.acknowledged == len(acked)
    assert verdict.stored == len(stored)
    assert verdict.lost == len(lost)
    assert verdict.duplicated == sum(stored.values()) - len(stored)
    assert verdict.unacknowledged_stored == len(set(stored) - acked)
    assert verdict.without_identity == sum(row[1] is None for row in rows)
    assert verdict.holds == (not lost and not twice)
    assert len(verdict.lost_examples) == min(EXAMPLES_MAX, len(lost))
    assert len(verdict.duplicated_examples) == min(EXAMPLES_MAX, len(twice))
    assert set(verdict.lost_examples) <= {Identity(*each) for each in lost}
    assert set(verdict.duplicated_examples) <= {Identity(*each) for each in twice}
