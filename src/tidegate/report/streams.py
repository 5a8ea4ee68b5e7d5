"""Keeping standard output for the result alone."""

import contextlib
import os
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def everything_else_to_stderr() -> Iterator[None]:
    """What is printed meanwhile, also by child processes, goes to stderr: stdout is for the result."""
    sys.stdout.flush()
    try:
        output, error = sys.__stdout__.fileno(), sys.__stderr__.fileno()  # type: ignore[union-attr]
    except (OSError, AttributeError):
        with contextlib.redirect_stdout(sys.stderr):
            yield
        return
    kept = os.dup(output)
    os.dup2(error, output)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, output)
        os.close(kept)
