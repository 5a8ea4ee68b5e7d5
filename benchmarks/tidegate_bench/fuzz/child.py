"""One fuzzing process: ``python -m tidegate_bench.fuzz.child``. It says on standard output how far it has come.

The fuzzer takes its process over, writes what it likes to standard error and ends it without a word. So this counts
itself, goes on after a crash, and keeps the bytes of each kind of crash once.
"""

import argparse
import hashlib
import importlib.util
import os
import sys
import time
import traceback
from collections import Counter
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import atheris
import msgspec

if TYPE_CHECKING:
    from tidegate_bench.fuzz.targets import Case

HANG_S = 1.0
STUCK_S = 20  # the fuzzer itself ends the process
SPEAK_EVERY_S = 1.0
CASE_BYTES_MAX = 256
PACKAGE = "tidegate"
SCANNER = "tidegate.mqtt.frames"
WATCHED = ("tidegate.control", "tidegate.gateway", "tidegate.mqtt")


class SourceFinder:
    """Finds our modules as source, also where they are compiled: only what runs as Python shows where it goes."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        package, *parts = name.split(".")
        path = self._root.joinpath(*parts).with_suffix(".py") if parts else self._root
        is_ours = package == PACKAGE and path.is_file()
        return importlib.util.spec_from_file_location(name, path) if is_ours else None


class Fuzzing:
    def __init__(self, cases_max: int, directory: Path, scanners: list[ModuleType]) -> None:
        from tidegate_bench.fuzz import targets as fuzz_targets  # noqa: PLC0415 - only now it is watched

        self._targets = fuzz_targets.targets(*scanners)
        self._names = list(self._targets)
        self._case_of = fuzz_targets.case_of
        self._cases_max, self._directory = cases_max, directory
        self._cases, self._crashes, self._hangs = Counter[str](), Counter[str](), Counter[str]()
        self._kept: set[str] = set()
        self._spoke_s = time.monotonic()

    def one(self, data: bytes) -> None:
        found = self._case_of(data, self._names)
        if found is None:
            return
        name, case = found
        self._cases[name] += 1
        if self._is_hang(name, case, data):
            self._hangs[name] += 1
            self._keep("hang", name, data, name)
        now_s = time.monotonic()
        is_done = self._cases.total() >= self._cases_max
        if is_done or now_s - self._spoke_s > SPEAK_EVERY_S:
            self._spoke_s = now_s
            self._speak(is_done=is_done)
        if is_done:
            os._exit(0)

    def _is_hang(self, name: str, case: "Case", data: bytes) -> bool:
        """The machine may have been busy with something else: a hang is slow twice."""
        return self._seconds(name, case, data) > HANG_S and self._seconds(name, case, data) > HANG_S

    def _seconds(self, name: str, case: "Case", data: bytes) -> float:
        began_s = time.monotonic()
        try:
            self._targets[name](case)
        except Exception as error:
            self._crashes[name] += 1
            last = traceback.extract_tb(error.__traceback__)[-1]
            if self._keep("crash", name, data, f"{name} {type(error).__name__} {last.filename} {last.lineno}"):
                traceback.print_exc()
        return time.monotonic() - began_s

    def _keep(self, what: str, name: str, data: bytes, kind: str) -> bool:
        is_new = kind not in self._kept
        if is_new:
            self._kept.add(kind)
            digest = hashlib.blake2b(data, digest_size=8).hexdigest()
            (self._directory / f"{what}-{name}-{digest}").write_bytes(data)
        return is_new

    def _speak(self, *, is_done: bool) -> None:
        line = {"cases": self._cases, "crashes": self._crashes, "hangs": self._hangs, "is_done": is_done}
        sys.stdout.write(msgspec.json.encode(line).decode() + "\n")
        sys.stdout.flush()


def scanners() -> list[ModuleType]:
    """The frame scanner as watched source, and compiled if it is. From here on, every import gets the source."""
    as_installed = importlib.import_module(SCANNER)
    assert as_installed.__file__ is not None
    for name in [name for name in sys.modules if name.startswith(WATCHED)]:
        del sys.modules[name]
    sys.meta_path.insert(0, SourceFinder(Path(importlib.import_module(PACKAGE).__path__[0])))
    with atheris.instrument_imports(include=[PACKAGE]):
        watched = importlib.import_module(SCANNER)
    return [watched] if as_installed.__file__ == watched.__file__ else [watched, as_installed]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--directory", type=Path, required=True)
    options = parser.parse_args()
    log = os.open(options.directory / f"fuzz-{options.seed}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 2)
    both = scanners()
    with atheris.instrument_imports(include=[PACKAGE]):
        fuzzing = Fuzzing(options.cases, options.directory, both)
        from tidegate_bench.fuzz.seeds import seeds  # noqa: PLC0415 - only now it is watched
    corpus = options.directory / f"corpus-{options.seed}"
    corpus.mkdir(exist_ok=True)
    for number, seed in enumerate(seeds()):
        (corpus / f"seed-{number}").write_bytes(seed)
    arguments = [
        "fuzz",
        str(corpus),
        f"-seed={options.seed}",
        f"-max_len={CASE_BYTES_MAX}",
        f"-timeout={STUCK_S}",
        f"-artifact_prefix={options.directory}/",
    ]
    atheris.Setup(arguments, fuzzing.one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
