"""Files that only their owner may read: whole or not at all, also when several write at once."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tidegate.machine.private_files import write_private_file


def test_several_who_write_at_once_do_not_meet(tmp_path: Path) -> None:
    path = tmp_path / "revoked.json"
    contents = [bytes([number]) * 100_000 for number in range(8)]
    with ThreadPoolExecutor(8) as threads:
        for _ in range(20):
            list(threads.map(lambda content: write_private_file(path, content), contents))
            assert path.read_bytes() in contents
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_what_fails_leaves_nothing_and_takes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "passwords.csv"
    path.write_bytes(b"before")

    def failing(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", failing)
    with pytest.raises(OSError, match="No space left"):
        write_private_file(path, b"after")
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]
