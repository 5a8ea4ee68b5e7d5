"""Files and directories that only their owner may read: credentials, addresses, data."""

import os
import tempfile
from pathlib import Path

from tidegate.model.errors import UserError


def make_private(directory: Path) -> None:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        directory.chmod(0o700)
    except (FileExistsError, NotADirectoryError, PermissionError) as error:
        raise UserError(f"{directory} cannot be used as a private directory ({error}): choose another.") from None


def write_private(path: Path, content: bytes) -> None:
    """Whole or not at all, and never readable by anybody else, not even for a moment; nor is its directory."""
    make_private(path.parent)
    write_private_file(path, content)


def write_private_file(path: Path, content: bytes) -> None:
    """The same in a directory that others may read. Two who write it at once do not meet: the last one counts."""
    descriptor, name = tempfile.mkstemp(prefix=".tidegate-", suffix=".partial", dir=path.parent)  # its mode is 0600
    partial = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
