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


class WatchedFiles(Generic[T]):
    """``make`` turns their contents, in their order, into one value, and raises ``UserError`` where it cannot."""

    def __init__(self, paths: Sequence[str], make: Callable[[Sequence[bytes]], T]) -> None:
        self._paths = [Path(path) for path in paths]
        self._make = make
        self._stamp = self._look()
        self.value = self._read()

    def look(self) -> Reread:
        """About a damaged file once, and again when it has changed and is still damaged."""
        stamp = self._look()
        if stamp == self._stamp:
            return UNCHANGED
        self._stamp = stamp
        try:
            self.value = self._read()
        except UserError as error:
            return Reread(False, (f"{str(error).rstrip('.')}; until then what was read before counts.",))
        return Reread(True)

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
