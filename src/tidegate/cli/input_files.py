"""A text that a person has written, by the name of its file or from standard input."""

import io
import sys
from pathlib import Path

from tidegate.model.errors import UserError


def name_of(file: str) -> str:
    """What people call it."""
    return "standard input" if file == "-" else Path(file).name


def text_of(file: str, length_max: int, too_long: UserError, *, like: str) -> str:
    """``like`` is what could have been meant by a file that is not there."""
    content = _content(file, length_max, too_long, like)
    try:
        return io.StringIO(content.decode(), newline=None).read()  # lines end alike, whoever wrote them
    except UnicodeDecodeError as error:
        before = content[: error.start].decode()
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        place = f"{name_of(file)}, line {line}, column {column}"
        raise UserError(f"{place}: this is no text in UTF-8: save the file as that.") from None


def _content(file: str, length_max: int, too_long: UserError, like: str) -> bytes:
    """No more of it than can be meant, and a little: it may be without end."""
    most_bytes = 4 * length_max  # no character takes more in UTF-8
    try:
        if file == "-":
            content = sys.stdin.buffer.read(most_bytes + 1)
        else:
            with Path(file).open("rb") as opened:
                content = opened.read(most_bytes + 1)
    except FileNotFoundError:
        raise UserError(f"{file} does not exist: name {like}.") from None
    except OSError as error:
        raise UserError(f"{file} cannot be read ({error.strerror}): name a readable file.") from None
    if len(content) > most_bytes:
        raise too_long
    return content
