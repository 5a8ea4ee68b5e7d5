"""Files that are read again when they change. A damaged one changes nothing: what it said before counts on."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from tidegate.model.errors import UserError

T = TypeVar("T")
BYTES_MAX = 64 * 1024**2
_Stamp = tuple[tuple[int, int, int] | None, ...]


class Reread(NamedTuple):
    """Whether something is said otherwise now, and sentences about files that cannot be used."""

    changed: bool
    sentences: tuple[str, ...] = ()


UNCHANGED = Reread(False)
# Looks in a row, one a second, that have to find a changed file the same before it counts: it may be written in place.
# One that holds nothing any more may be waiting for what is to be written.
SETTLED_LOOKS, EMPTIED_LOOKS = 2, 10


class WatchedFiles(Generic[T]):
    """``make`` turns their contents, in their order, into one value, and raises ``UserError`` where it cannot.

    ``value`` is None until that was possible once; where ``strict``, it has to be at once.
    """

    def __init__(self, paths: Sequence[str], make: Callable[[Sequence[bytes]], T], *, strict: bool = True) -> None:
        self._paths = [Path(path) for path in paths]
        self._make = make
        self._stamp = self._look()  # of what has been acted upon
        self._seen, self._looks = self._stamp, 0  # what was found last, and by how many looks in a row
        self.value: T | None = None
        self._unsaid: tuple[str, ...] = ()
        try:
            self.value = self._read()
        except UserError as error:
            if strict:
                raise
            self._unsaid = (self._damaged(error),)

    def look(self) -> Reread:
        """About a damaged file once, and again when it has changed and is still damaged."""
        if self._unsaid:
            said, self._unsaid = self._unsaid, ()
            return Reread(False, said)
        stamp = self._look()
        self._looks = self._looks + 1 if stamp == self._seen else 1
        self._seen = stamp
        if stamp == self._stamp or self._looks not in (SETTLED_LOOKS, EMPTIED_LOOKS):
            return UNCHANGED
        return self._reread(stamp)

    def _reread(self, stamp: _Stamp) -> Reread:
        try:
            value = self._read()
        except UserError as error:
            self._stamp = stamp
            return Reread(False, (self._damaged(error),))
        if self._look() != stamp:
            return UNCHANGED  # it was changed meanwhile: the next looks go on
        if self.value and not value and self._looks < EMPTIED_LOOKS:
            return Reread(False, (self._emptied,))
        self._stamp, self.value = stamp, value
        return Reread(True)

    def _damaged(self, error: UserError) -> str:
        follows = "clients that need it are told to come again" if self.value is None else "what was read before counts"
        return f"{str(error).rstrip('.')}; until then {follows}."

    @property
    def _emptied(self) -> str:
        paths = ", ".join(str(path) for path in self._paths)
        left_s = EMPTIED_LOOKS - SETTLED_LOOKS
        return f"{paths} holds nothing any more: fill it again; what was read before counts for {left_s} s more."

    def _look(self) -> _Stamp:
        return tuple(_stamp(path) for path in self._paths)

    def _read(self) -> T:
        return self._make([_content(path) for path in self._paths])


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(BYTES_MAX + 1)
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}): give the path of a readable file.") from None
    if len(content) > BYTES_MAX:
        raise UserError(f"{path} is larger than {BYTES_MAX // 1024**2} MiB: give a smaller file.")
    return content
