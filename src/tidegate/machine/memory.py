"""Memory that is free, and still counted as this process's."""

import ctypes


def give_back() -> None:
    """Return what was freed to the system. glibc keeps the pages of large arrays that came and went; others do not."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
