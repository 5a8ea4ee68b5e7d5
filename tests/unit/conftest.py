"""What unit tests begin with: a directory for tables, one with files to maintain, and a sink."""

from pathlib import Path

import pytest
from sinking import Bench

from maintaining import Writer


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "tables"


@pytest.fixture
def writer(directory: Path) -> Writer:
    made = Writer(directory)
    for _ in range(10):
        made.write()
    return made


@pytest.fixture
def bench(directory: Path) -> Bench:
    return Bench(directory)
