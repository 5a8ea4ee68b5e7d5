"""Makes ``.venv``: everything from the lock file, and Spark's class cache. Standard library only: nothing is there yet.

One progress bar covers all of it. The work is measured in bytes: wheels arrive in a directory of their own, are
unpacked beside it, and what both should come to is known from the lock file's contents.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
DONE = VENV / ".complete"
DOWNLOAD_MB = 710
UNPACKED_MB = 1300
# What preparing Spark takes, in the unit of the bar: about as long as that many megabytes.
PREPARE_MB = 700
PREPARE_S = 40.0
WIDTH = 30
QUIET_S = 2.0


class Bar:
    """One line with the share done and the time left; a line every two seconds where there is no terminal."""

    def __init__(self, downloads: Path) -> None:
        self._downloads = downloads
        self._began_s = time.monotonic()
        self._prepare_s: float | None = None
        self._ended = threading.Event()
        self._top = 0.0
        self._heart = threading.Thread(target=self._beat, daemon=True)
        self._heart.start()

    def preparing(self) -> None:
        self._prepare_s = time.monotonic()

    def close(self) -> None:
        self._ended.set()
        self._heart.join()
        if sys.stderr.isatty():
            sys.stderr.write("\r\x1b[K")

    def _share(self) -> float:
        total = DOWNLOAD_MB + UNPACKED_MB + PREPARE_MB
        if self._prepare_s is not None:
            done = DOWNLOAD_MB + UNPACKED_MB + PREPARE_MB * min(0.95, (time.monotonic() - self._prepare_s) / PREPARE_S)
        else:
            done = min(DOWNLOAD_MB + UNPACKED_MB, megabytes(self._downloads) + megabytes(VENV))
        # Wheels are deleted when they are unpacked: the bar never goes back.
        self._top = max(self._top, min(0.99, done / total))
        return self._top

    def _beat(self) -> None:
        every_s = 0.5 if sys.stderr.isatty() else QUIET_S
        while not self._ended.wait(every_s):
            share, passed_s = self._share(), time.monotonic() - self._began_s
            left = f"{passed_s * (1 - share) / share:3.0f} s left" if share > 0.02 else "estimating"
            bar = "#" * round(share * WIDTH)
            line = f"Setting up [{bar:<{WIDTH}}] {share:4.0%} {passed_s:3.0f} s, {left}"
            sys.stderr.write(f"\r\x1b[K{line}" if sys.stderr.isatty() else f"{line}\n")
            sys.stderr.flush()


def megabytes(directory: Path) -> float:
    total = 0
    for parent, _, names in os.walk(directory):
        for name in names:
            try:
                total += os.lstat(f"{parent}/{name}").st_size
            except OSError:
                continue
    return total / 1e6


def run(command: list[str], environment: dict[str, str] | None = None) -> None:
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        reason = next((line for line in reversed(lines) if "ERROR" in line), lines[-1] if lines else "no word")
        sys.exit(f"\nset-up: '{' '.join(command[:4])} ...' failed ({reason.strip()}): see to it, and run it again.")


def main() -> None:
    if sys.version_info < (3, 11):  # noqa: UP036 - whoever runs this may have any Python
        sys.exit(
            f"set-up: this is Python {sys.version.split()[0]}, and 3.11 or later is needed: make PYTHON=python3.11"
        )
    sys.stderr.write(
        f"Set-up, once: downloads about {DOWNLOAD_MB} MB (Python packages, with Spark and Java) into {VENV.name}/.\n"
        "Nothing is installed elsewhere, no root is needed, Ctrl-C stops it; the next time it is skipped.\n"
    )
    VENV.mkdir(exist_ok=True)
    downloads = Path(tempfile.mkdtemp(prefix="downloads-", dir=VENV))
    bar = Bar(downloads)
    try:
        python = str(VENV / "bin" / "python")
        if not os.access(python, os.X_OK):
            run([sys.executable, "-m", "venv", str(VENV)])
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        environment = {**os.environ, "TMPDIR": str(downloads)}
        run([*pip, "--require-hashes", "-r", "requirements.lock"], environment)
        run([*pip, "--no-deps", "--no-build-isolation", "--editable", "."], environment)
        bar.preparing()
        run([python, "-c", "from tidegate.pipeline.spark import prepare; prepare()"])
        DONE.touch()
    finally:
        bar.close()
        shutil.rmtree(downloads, ignore_errors=True)
    sys.stderr.write("Set-up is complete.\n")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("\nset-up: stopped; run it again to go on.")
