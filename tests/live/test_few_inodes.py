"""A disk that has room but no inode left, under a real chain: alarms before it is too late, and a gate that closes."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.waiting import until

from tidegate.brokers.nats.disk_guard import FREE_INODES_MIN
from tidegate.local.chain import Chain
from tidegate.machine.disks import room_at
from tidegate.settings.tree import Settings

pytestmark = [pytest.mark.live, pytest.mark.timeout(120)]
INODES = 4 * FREE_INODES_MIN


@pytest.fixture
def few_inodes(tmp_path: Path) -> Iterator[Path]:
    mounting = ["mount", "-t", "tmpfs", "-o", f"size=2g,nr_inodes={INODES}", "tmpfs", str(tmp_path)]
    if subprocess.run(mounting, capture_output=True, check=False).returncode:
        pytest.skip("left out: mounting a small disk needs root")
    yield tmp_path
    subprocess.run(["umount", "--lazy", str(tmp_path)], check=True)


def leave_free(directory: Path, inodes: int) -> None:
    for number in range(room_at(directory).inodes_free - inodes):
        (directory / f"small-{number}").touch()


def test_inodes_that_run_out_are_told_and_brokers_stop_acknowledging(few_inodes: Path) -> None:
    said: list[str] = []
    ballast = few_inodes / "ballast"
    with Chain(few_inodes, Settings(), said.append, nodes=0) as chain:
        chain.start_brokers()
        chain.watch()
        assert said == []
        ballast.mkdir()
        leave_free(ballast, FREE_INODES_MIN // 4)
        chain.watch()
        closed, short = said
        assert closed.startswith(f"ALARM: Hardly {FREE_INODES_MIN:,} inodes are left on the disk of the brokers' store")
        tables = chain.installation.tables
        assert short.startswith(
            f"ALARM: The disk of the tables ({tables}) and the state directory ({few_inodes}) has used"
        )
        assert "of its inodes" in short
        for file in ballast.iterdir():
            file.unlink()
        until(lambda: chain.watch() or said[-1] == "The alarm is over.", 20, every_s=0.2)
