"""What a check must not have to find out again: a file beside the tables, written whole or not at all.

Where it is missing or damaged the check begins with the oldest report that the journal has, and looks everything up.
"""

import os
from pathlib import Path

import msgspec

from tidegate.pipeline.completeness.pages import Pages

FILE_NAME = "completeness.state"
VERSION = 1


class Saved(msgspec.Struct):
    version: int = VERSION
    journal: str = ""  # when it was made: what tells it from that of a bus that was lost
    report: int = 0  # the last one that was read
    positions: dict[int, int] = {}
    settled: dict[int, int] = {}
    reports_lost: int = 0
    pages: Pages = msgspec.field(default_factory=Pages)


def load(directory: Path) -> Saved:
    try:
        saved = msgspec.msgpack.decode((directory / FILE_NAME).read_bytes(), type=Saved)
    except (FileNotFoundError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Saved()
    return saved if saved.version == VERSION else Saved()


def save(directory: Path, saved: Saved) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    whole = directory / FILE_NAME
    part = whole.with_suffix(f".{os.getpid()}")
    part.write_bytes(msgspec.msgpack.encode(saved))
    part.replace(whole)
