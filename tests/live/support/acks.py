"""What devices were told was stored."""

from collections import Counter

import pyarrow as pa


def identities(table: pa.Table) -> Counter[tuple[str, int, int]]:
    return Counter(zip(*(table.column(name).to_pylist() for name in ("device", "boot", "seq")), strict=True))
