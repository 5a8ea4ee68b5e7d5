"""Parsing a run of pushed messages as columns: no Python object per row.

A run is what lies between two control frames: a line ``HMSG <subject> <sid> <reply> <header bytes> <total bytes>``, the
headers, the payload, again and again; the reply ends in ``<sequence>.<delivered>.<stamp>.<left>``. All line ends and
spaces are found at once and laid out as a table with a row per frame. That layout is a guess, which a payload with a
line break would spoil, so it is proven: if the run begins at a frame and every frame is as long as the server announced
it, each next one begins at a frame too. A run that cannot be proven is not read here.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Places = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
_STAMP_DIGITS = 19
_CR, _SPACE, _DOT, _ZERO, _H = b"\r .0H"


class Columns(NamedTuple):
    """Consecutive messages: subject, arrival in nanoseconds, payload."""

    subjects: pa.Array
    stamps: pa.Array
    payloads: pa.Array


def scan(run: bytes, prefix: int, first: int, delivered: int) -> Columns | None:
    """The rows of a run of whole frames, or None if they are not plain, not proven or not the sequences expected.

    ``prefix`` is the length of a reply subject before the sequence; ``first`` the sequence and ``delivered`` the count
    of deliveries that must stand in the first row.
    """
    buffer = np.frombuffer(run, np.uint8)
    lines = _lines(run, buffer)
    if lines is None:
        return None
    starts = np.concatenate(([0], lines[:-1, -1] + 2))
    spaces = _spaces(buffer, starts, lines[:, 0])
    if spaces is None or (buffer[starts] != _H).any():
        return None
    header_bytes = _numbers(buffer, spaces[:, 3] + 1, spaces[:, 4])
    total_bytes = _numbers(buffer, spaces[:, 4] + 1, lines[:, 0])
    bodies = lines[:, 0] + 2 + header_bytes
    if (bodies != lines[:, -2] + 2).any() or (lines[:, 0] + 2 + total_bytes != lines[:, -1]).any():
        return None
    stamps = _stamps(buffer, spaces[:, 2] + 1 + prefix, spaces[:, 3], first, delivered)
    if stamps is None:
        return None
    whole = pa.py_buffer(run)
    return Columns(_cut(whole, spaces[:, 0] + 1, spaces[:, 1]), pa.array(stamps), _cut(whole, bodies, lines[:, -1]))


def _lines(run: bytes, buffer: Bytes) -> Places | None:
    """Where the lines of each frame end: its own, the headers' (as many as the first frame has), the payload's."""
    ends = np.flatnonzero(buffer == _CR)
    second = run.find(b"\r\nHMSG ")
    each = int(np.searchsorted(ends, second, side="right")) if second >= 0 else len(ends)
    if each < 4 or len(ends) % each or int(ends[-1]) + 2 != len(run):
        return None
    return ends.reshape(-1, each)


def _spaces(buffer: Bytes, starts: Places, ends: Places) -> Places | None:
    """The five spaces of each frame's own line, if there are five in every one."""
    found = np.flatnonzero(buffer == _SPACE)
    index = np.searchsorted(found, starts)
    if (np.searchsorted(found, ends) - index != 5).any():
        return None
    spaces: Places = found[index[:, None] + np.arange(5)]
    return spaces


def _numbers(buffer: Bytes, starts: Places, ends: Places) -> Places:
    """Decimal numbers of any width. Widths are few, so all numbers of one width are read together."""
    widths = ends - starts
    values = np.full(len(starts), -1, np.int64)
    for width in range(max(1, int(widths.min())), min(_STAMP_DIGITS, int(widths.max())) + 1):
        at = widths == width
        if at.all():
            return _digits(buffer, starts, width)
        values[at] = _digits(buffer, starts[at], width)
    return values


def _digits(buffer: Bytes, starts: Places, width: int) -> Places:
    windows = np.lib.stride_tricks.sliding_window_view(buffer, width)[starts] - _ZERO
    powers = 10 ** np.arange(width - 1, -1, -1, dtype=np.int64)
    values: Places = windows.astype(np.int64) @ powers
    return values


def _stamps(buffer: Bytes, starts: Places, ends: Places, first: int, delivered: int) -> Places | None:
    """When each row arrived, if sequences and deliveries count on by one from what is expected."""
    ordinals = np.arange(len(starts), dtype=np.int64)
    for expected in (ordinals + first, ordinals + delivered):
        after = starts + _widths(expected)
        if (after + 1 + _STAMP_DIGITS >= ends).any() or (buffer[after] != _DOT).any():
            return None
        if (_numbers(buffer, starts, after) != expected).any():
            return None
        starts = after + 1
    if (buffer[starts + _STAMP_DIGITS] != _DOT).any():
        return None
    return _digits(buffer, starts, _STAMP_DIGITS)


def _widths(rising: Places) -> Places:
    """How many digits each of these rising numbers has."""
    low, high = len(str(rising[0])), len(str(rising[-1]))
    if low == high:
        return np.full(len(rising), low, np.int64)
    bounds = 10 ** np.arange(low, high, dtype=np.int64)
    return np.searchsorted(bounds, rising, side="right") + low


def _cut(whole: pa.Buffer, starts: Places, ends: Places) -> pa.Array:
    """Pieces of a buffer as an array: wanted and unwanted ones alternate in it, and the wanted ones are taken."""
    bounds = np.stack((starts, ends), axis=1).astype(np.int32).reshape(-1)
    pieces = pa.Array.from_buffers(pa.binary(), len(bounds) - 1, [None, pa.py_buffer(bounds), whole])
    return pieces.take(pa.array(np.arange(0, len(bounds) - 1, 2)))
