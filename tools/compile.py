"""Compiles the gateway's per-message path anew where it is older than its source, in place. Standard library only.

A compiled module goes before its source: one that is out of date would hide every change. So it is deleted before
anything else happens, and where it cannot be built the source runs.
"""

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DONE = ROOT / ".venv" / ".compiled"


def sources() -> list[Path]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return [ROOT / name for name in settings["tool"]["tidegate"]["compiled"]]


def compiled() -> list[Path]:
    """The modules, and what they are made of."""
    return sorted((ROOT / "src").rglob("*.so"))


def main() -> None:
    changed_s = max(path.stat().st_mtime for path in (*sources(), ROOT / "setup.py", ROOT / "pyproject.toml"))
    before = compiled()
    if not before or min(path.stat().st_mtime for path in before) < changed_s:
        for path in before:
            path.unlink()
        command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace", "--force"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if not compiled():
            why = next((line for line in done.stderr.splitlines() if "not compiled" in line), "")
            sys.stderr.write(f"{why or 'The per-message path is not compiled and runs as Python.'}\n")
    DONE.touch()


if __name__ == "__main__":
    main()
