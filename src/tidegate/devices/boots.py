"""Boot numbers: each start of a device gets one that no earlier start had, or its identities would come again."""

import os
from pathlib import Path

from tidegate.model.errors import UserError

SUFFIX = ".boot"


def next_boot(path: Path, now_s: float) -> int:
    """The next number of the counter in this file, which is on the disk before it is given.

    It is never less than the clock's seconds, so that a lost counter costs no identity.
    """
    number = max(_read(path) + 1, int(now_s))
    partial = path.with_name(path.name + ".partial")
    with partial.open("w", encoding="ascii") as file:
        file.write(f"{number}\n")
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
    return number


def _read(path: Path) -> int:
    try:
        return int(path.read_text(encoding="ascii"))
    except FileNotFoundError:
        return -1
    except ValueError:
        raise UserError(f"{path} holds no boot number: write the last one into it, or remove it.") from None
