"""The identities that a table of readings holds, sorted: what is looked for, compared and remembered."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tidegate.pipeline.tables.identities import Keys, Runs, keys_of


@dataclass(frozen=True)
class Identities:
    """The rows that have an identity, sorted by key, device, boot, sequence and then by row."""

    rows: np.ndarray
    keys: Keys
    codes: np.ndarray  # which device, as a number
    boots: np.ndarray
    sequences: np.ndarray
    slices: np.ndarray

    def runs(self, chosen: np.ndarray) -> dict[int, Runs]:
        """The chosen ones as runs, by slice."""
        found = {}
        for slice_ in np.unique(self.slices[chosen]).tolist():
            mine = chosen & (self.slices == slice_)
            order = np.lexsort((self.sequences[mine], self.keys[mine]))
            found[slice_] = Runs.of(self.keys[mine][order], self.sequences[mine][order])
        return found


def identities_of(readings: pa.Table) -> Identities:
    rows = np.flatnonzero(readings["identified"].to_numpy())
    devices = readings["device"].combine_chunks().dictionary_encode()
    codes = devices.indices.to_numpy()[rows]
    boots, sequences = (readings[name].take(pa.array(rows)).to_numpy().astype(np.int64) for name in ("boot", "seq"))
    slices = readings["slice"].to_numpy()[rows]
    order = np.lexsort((rows, sequences, boots, codes))
    is_first = np.ones(len(order), bool)
    is_first[1:] = (np.diff(codes[order]) != 0) | (np.diff(boots[order]) != 0)
    firsts = order[is_first]
    keys = keys_of(devices.dictionary.take(pa.array(codes[firsts])).to_pylist(), boots[firsts])
    keys = keys[np.cumsum(is_first) - 1]
    by_key = np.argsort(keys, kind="stable")
    order = order[by_key]
    return Identities(rows[order], keys[by_key], codes[order], boots[order], sequences[order], slices[order])
