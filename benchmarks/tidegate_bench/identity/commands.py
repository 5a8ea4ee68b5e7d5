"""Commands of the product, as an operator gives them."""

import subprocess
import sys
import time
from pathlib import Path

from tidegate.bus.issued import Credentials, read_issued
from tidegate.model.errors import TidegateError

COMMAND_S_MAX = 180.0


def tidegate(*arguments: str, state: Path) -> float:
    """Run one, and say how long it took; it has to succeed."""
    began_s = time.monotonic()
    command = [sys.executable, "-m", "tidegate.cli.main", *arguments, "--state", str(state)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=COMMAND_S_MAX, check=False)
    if done.returncode:
        raise TidegateError(f"'tidegate {' '.join(arguments)}' ended with {done.returncode}: {done.stderr.strip()}")
    return time.monotonic() - began_s


def named(path: Path, names: list[str]) -> str:
    """A file with a name per line, for ``--from``."""
    path.write_text("".join(f"{name}\n" for name in names))
    return str(path)


def issued(state: Path, out: Path, names: list[str]) -> Credentials:
    """Their passwords, as ``tidegate device add`` writes them to a file."""
    listed = named(out.with_suffix(".txt"), names)
    tidegate("device", "add", "--from", listed, "--out", str(out), state=state)
    return read_issued(out)
