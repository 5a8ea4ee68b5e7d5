"""Copies in the state directory of what must not be lost with the control bus: one sentence where that fails."""

from pathlib import Path
from typing import TypeVar

import msgspec

from tidegate.bus.documents import UNREADABLE
from tidegate.machine.private_files import write_private
from tidegate.model.errors import TidegateError, UserError

T = TypeVar("T")


def read_copy(path: Path, kind: type[T]) -> T | None:
    """None where there is no copy."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}): let its owner run this.") from None
    except UNREADABLE as error:
        raise UserError(f"{path} is damaged ({error}): restore it from a backup, or delete it to do without.") from None


def write_copy(path: Path, content: bytes) -> None:
    try:
        write_private(path, content)
    except OSError as error:
        raise TidegateError(f"{path} cannot be written ({error.strerror}): make room, and run this again.") from None
