"""Locks between processes that the kernel takes away from a process that dies: one byte of the memory's file each.

They do not exclude threads of one process from each other; a gateway process has only one that comes here. Nobody
waits for anything, nor takes a second lock, while it holds one.
"""

import fcntl
import os


class MemoryFile:
    """The file behind the memory, open for as long as anybody has a lock on it in mind."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def __del__(self) -> None:
        os.close(self.fd)


class ByteLock:
    def __init__(self, file: MemoryFile, place: int) -> None:
        self._file = file
        self._fd = file.fd
        self._place = place

    def __enter__(self) -> None:
        fcntl.lockf(self._fd, fcntl.LOCK_EX, 1, self._place)

    def __exit__(self, *_: object) -> None:
        fcntl.lockf(self._fd, fcntl.LOCK_UN, 1, self._place)
