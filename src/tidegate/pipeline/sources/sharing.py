"""How much of each slice a batch takes, so that all together stay within a limit of rows and one of bytes.

How large a message is nobody knows before it is read, only what those of a slice take on average. So the limit of bytes
keeps a batch about as long as it should be; that one which is larger does no harm is up to the tasks (``writing.py``).
"""

from collections.abc import Mapping


def share_rows(
    waiting: Mapping[int, int], message_bytes: Mapping[int, float], rows_max: int, bytes_max: int
) -> dict[int, int]:
    """Rows per slice, given how many wait: an equal share of both limits each, and what others leave.

    A slice takes at least one of the rows that it may: a message that is larger than all bytes must get through, too.
    """
    rows = _shared(waiting, rows_max)
    sizes = {slice_: message_bytes.get(slice_, 1.0) for slice_ in rows}
    wanted_bytes = {slice_: round(count * sizes[slice_]) for slice_, count in rows.items()}
    if sum(wanted_bytes.values()) <= bytes_max:
        return rows
    granted = _shared(wanted_bytes, bytes_max)
    return {
        slice_: count
        if granted[slice_] == wanted_bytes[slice_]
        else min(count, max(1, int(granted[slice_] / sizes[slice_])))
        for slice_, count in rows.items()
    }


def _shared(wanted: Mapping[int, int], limit: int) -> dict[int, int]:
    """Equal shares of the limit; who wants less than its share leaves the rest to the others."""
    if sum(wanted.values()) <= limit:
        return dict(wanted)
    granted, left = {}, limit
    for index, slice_ in enumerate(sorted(wanted, key=wanted.__getitem__)):
        granted[slice_] = min(wanted[slice_], left // (len(wanted) - index))
        left -= granted[slice_]
    return granted
