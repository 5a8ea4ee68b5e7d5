"""The ledger: what devices know to be safe against what the table holds. Nothing lost, nothing twice.

The comparison is pure and vectorised: identities (device, boot, seq) become one integer each, so that tens of
millions of them compare by sorting. A reading that is stored but was never acknowledged is no fault: its
acknowledgement may have been lost on the way.
"""

from contextlib import suppress
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from tidegate.model.errors import TidegateError, UserError
from tidegate.pipeline.tables.damage import UNREADABLE, dataset, fault_of

READINGS = "readings"
IDENTITY = ("device", "boot", "seq")
_IDENTITIES = pa.schema([("device", pa.string()), ("boot", pa.int64()), ("seq", pa.int64())])
EXAMPLES_MAX = 10
KEY_MAX = 2**63

Keys = npt.NDArray[np.int64]


class Identity(msgspec.Struct, frozen=True, order=True):
    """What makes a reading storable exactly once."""

    device: str
    boot: int
    seq: int


class LedgerVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of identities, except ``duplicated`` and ``without_identity``, which count rows.

    ``lost`` were acknowledged and are not stored; ``duplicated`` are the rows beyond the first of their
    identity.
    """

    acknowledged: int
    stored: int
    lost: int
    duplicated: int
    unacknowledged_stored: int
    without_identity: int
    lost_examples: tuple[Identity, ...] = ()
    duplicated_examples: tuple[Identity, ...] = ()

    @property
    def holds(self) -> bool:
        return self.lost == 0 and self.duplicated == 0


def check(acks: pa.Table, readings: pa.Table) -> LedgerVerdict:
    """Compare two tables with the columns device (string), boot and seq (int64)."""
    acks, without_acks = _with_identity(acks)
    if without_acks:
        raise TidegateError(f"{without_acks} acknowledgements have no identity: the acknowledgement files are damaged.")
    readings, without_identity = _with_identity(readings)
    acked_keys, stored_keys = _keys(acks, readings)
    acked, _ = _distinct(acked_keys)
    stored, repeated = _distinct(stored_keys)
    lost = acked[~_contains(stored, acked)]
    return LedgerVerdict(
        acknowledged=len(acked),
        stored=len(stored),
        lost=len(lost),
        duplicated=len(repeated),
        unacknowledged_stored=len(stored) - (len(acked) - len(lost)),
        without_identity=without_identity,
        lost_examples=_examples(acks, acked_keys, lost),
        duplicated_examples=_examples(readings, stored_keys, _distinct(repeated)[0]),
    )


def read_identities(tables: Path) -> pa.Table:
    """The identities of all rows of the readings' table, as they stand in its newest version."""
    path = tables / READINGS
    try:
        files = pa.table(DeltaTable(str(path)).get_add_actions())["path"].to_pylist()
        table = (
            dataset([str(path / file) for file in files], _IDENTITIES).to_table()
            if files
            else _IDENTITIES.empty_table()
        )
    except TableNotFoundError:
        raise UserError(f"No table of readings at {path}: has a processing node written to it yet?") from None
    except (DeltaError, *UNREADABLE) as error:
        named = _damage(path)
        raise TidegateError(named or f"The table at {path} cannot be read: {error}") from error
    return table


def _damage(path: Path) -> str | None:
    """A sentence where a file is to blame. A verdict without its readings would be none, so nothing goes on without."""
    with suppress(DeltaError):
        table = DeltaTable(str(path))
        for name in pa.table(table.get_add_actions())["path"].to_pylist():
            if (what := fault_of(path / name)) is not None:
                return (
                    f"The file {name} of the table {READINGS} {what}, so nothing can be said of its readings: restore "
                    f"it from a copy, or take it out of the table with 'tidegate table check --table {READINGS} "
                    f"--remove {name}', and they count as lost."
                )
    return None


def _with_identity(table: pa.Table) -> tuple[pa.Table, int]:
    """The rows that have an identity, and how many have none."""
    table = table.select(list(IDENTITY))
    if not any(column.null_count for column in table.columns):
        return table, 0
    known = table.drop_null()
    return known, table.num_rows - known.num_rows


def _keys(first: pa.Table, second: pa.Table) -> tuple[Keys, Keys]:
    """One integer per row, equal exactly where the identities are equal."""
    rows = first.num_rows
    keys, keys_span = _ranks(_column(first, second, "device"))
    for name in ("boot", "seq"):
        numbers = np.concatenate([_integers(table, name) for table in (first, second)])
        low, span = _span(numbers)
        # Numbers that lie too far apart give way to their ranks. Of n rows there are at most n ranks, so a product
        # of two always fits one 64-bit integer.
        if keys_span * span >= KEY_MAX:
            (keys, keys_span), (numbers, span), low = _dense(keys), _dense(numbers), 0
        keys = keys * span
        keys += numbers
        keys -= low
        keys_span *= span
    return keys[:rows], keys[rows:]


def _dense(values: Keys) -> tuple[Keys, int]:
    """(each value's rank, how many there are)."""
    distinct, ranks = np.unique(values, return_inverse=True)
    return ranks.astype(np.int64, copy=False), max(1, len(distinct))


def _ranks(devices: pa.ChunkedArray) -> tuple[Keys, int]:
    """(a number for each device, how many there are)."""
    encoded = devices.dictionary_encode().unify_dictionaries()
    parts = [chunk.indices.to_numpy(zero_copy_only=False) for chunk in encoded.chunks if len(chunk)]
    if not parts:
        return np.empty(0, np.int64), 1
    return np.concatenate(parts).astype(np.int64), len(encoded.chunk(0).dictionary)


def _column(first: pa.Table, second: pa.Table, name: str) -> pa.ChunkedArray:
    chunks = [chunk for table in (first, second) for chunk in table.column(name).chunks]
    return pa.chunked_array(chunks, type=first.schema.field(name).type)


def _integers(table: pa.Table, name: str) -> Keys:
    numbers: Keys = table.column(name).to_numpy().astype(np.int64, copy=False)
    return numbers


def _span(values: Keys) -> tuple[int, int]:
    """(the lowest, how many integers from there to the highest)."""
    if not len(values):
        return 0, 1
    low = int(values.min())
    return low, int(values.max()) - low + 1


def _distinct(keys: Keys) -> tuple[Keys, Keys]:
    """(each key once, every further appearance of one), both sorted. Sorting beats hashing from 10^6 keys on."""
    ordered = np.sort(keys)
    is_repeated = np.zeros(len(ordered), dtype=np.bool_)
    np.equal(ordered[1:], ordered[:-1], out=is_repeated[1:])
    return ordered[~is_repeated], ordered[is_repeated]


def _contains(sorted_keys: Keys, wanted: Keys) -> npt.NDArray[np.bool_]:
    """For each wanted key whether it is among the others; both are sorted and without repetition."""
    if not len(sorted_keys):
        return np.zeros(len(wanted), dtype=np.bool_)
    at = np.searchsorted(sorted_keys, wanted)
    at[at == len(sorted_keys)] = 0
    return np.equal(sorted_keys[at], wanted)


def _examples(table: pa.Table, keys: Keys, wanted: Keys) -> tuple[Identity, ...]:
    """The identities behind up to ten keys."""
    rows = pa.array([int(np.argmax(keys == key)) for key in wanted[:EXAMPLES_MAX]], pa.int64())
    return tuple(sorted(Identity(**row) for row in table.take(rows).to_pylist()))
