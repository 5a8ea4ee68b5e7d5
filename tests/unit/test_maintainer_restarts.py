"""What a maintainer does next follows from what was done, whoever did it, and not from when its process began."""

import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from maintaining import SLICES, Writer, active
from tidegate.bus.documents import TABLES
from tidegate.model.installation import Installation
from tidegate.model.tables import TablesState
from tidegate.pipeline.maintenance import care, maintainer, vacuum
from tidegate.pipeline.maintenance.maintainer import Maintainer
from tidegate.pipeline.maintenance.pacing import is_due
from tidegate.pipeline.maintenance.settings import MaintenanceSettings
from tidegate.pipeline.tables.tables import Tables


class OnePlace:
    """A control bus that outlives the processes, in memory."""

    def __init__(self) -> None:
        self.said: TablesState | None = None

    def get(self, document: object) -> TablesState | None:
        assert document is TABLES
        return self.said

    def put(self, document: object, value: TablesState) -> None:
        assert document is TABLES
        self.said = value


class Started:
    """A maintainer's process, for one round."""

    def __init__(self, tables: Path, bus: OnePlace, patch: pytest.MonkeyPatch, **settings: Any) -> None:
        installation = Installation(
            control_urls=(),
            data_urls=(),
            mqtt_addresses=(),
            monitor_urls=(),
            mqtt_user="",
            mqtt_password="",
            slices=SLICES,
            tables=str(tables),
        )
        patch.setattr(maintainer, "load_installation", lambda _: installation)
        patch.setattr(maintainer, "Completeness", lambda *_, **__: None)
        patch.setattr(maintainer, "Bus", lambda *_, **__: bus)
        patch.setattr(maintainer, "Turn", lambda *_: NoTurn())
        self.made = Maintainer(
            tables, MaintenanceSettings(**settings), lambda _: None, fsync=False, identity_horizon_days=30
        )
        self.made._learn_what_was_done()

    def round(self) -> tuple[str, ...]:
        self.made._round()
        self.made._spoken_s = 0.0
        self.made._speak()
        return tuple(self.made._alarms.values())


class NoTurn:
    holder = None

    def keep(self) -> None:
        """It is ours."""


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    writer = Writer(tmp_path / "tables")
    for _ in range(10):
        writer.write()
    return tmp_path / "tables"


@pytest.fixture
def vacuumed(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """When there was one."""
    found: list[float] = []
    removable = vacuum.removable
    monkeypatch.setattr(vacuum, "removable", lambda *given: found.append(time.time()) or removable(*given))
    return found


def test_a_start_makes_nothing_due_and_puts_nothing_off(
    tables: Path, vacuumed: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    bus, now_s = OnePlace(), time.time()
    monkeypatch.setattr(time, "time", lambda: now_s)
    for minute in range(0, 31):  # a process each minute
        now_s = 1_800_000_000.0 + minute * 60
        Started(tables, bus, monkeypatch, vacuum_every_s=600.0).round()
    assert [round(at_s - vacuumed[0]) for at_s in vacuumed] == [0, 600, 1200, 1800]


def test_what_was_done_is_still_told_after_a_restart(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bus = OnePlace()
    Started(tables, bus, monkeypatch).round()
    first = bus.said
    assert first is not None
    again = Started(tables, bus, monkeypatch)
    again.made._speak()
    assert bus.said is not None
    assert bus.said.runs == first.runs
    assert bus.said.tables == first.tables


def test_merges_that_fail_for_lack_of_room_do_not_keep_it_from_making_room(
    tables: Path, vacuumed: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(care, "RESERVE_BYTES", 1 << 60)
    alarms = Started(tables, OnePlace(), monkeypatch).round()
    assert "no room to merge" in alarms[0]
    assert vacuumed


def test_a_merge_that_fails_raises_an_alarm_and_the_other_tables_are_looked_after(
    tables: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bus = OnePlace()
    Tables(tables).claim({0: 2})
    started = Started(tables, bus, monkeypatch, merge_files_min=4)
    with monkeypatch.context() as patch:
        patch.setattr(care, "merge", fails)
        (alarm,) = started.round()
    assert alarm.startswith("The table readings could not be looked after: 10 files of ")
    assert "are left as they are until the next round (no more)" in alarm
    assert bus.said is not None
    assert [run.table for run in bus.said.runs] == ["readings", "means", "rejected"]
    assert started.round() == ()
    assert len(active(tables)) == 1


def fails(*_: object) -> None:
    raise MemoryError("no more")


def test_a_damaged_file_raises_an_alarm_that_ends_when_it_is_restored(
    tables: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tables / "readings" / sorted(active(tables))[3]
    whole = path.read_bytes()
    path.unlink()
    started = Started(tables, OnePlace(), monkeypatch, merge_files_min=4)
    (alarm,) = started.round()
    assert f"{path.name} of the table readings is missing" in alarm
    assert len(active(tables)) == 2
    path.write_bytes(whole)
    assert started.round() == ()


def test_a_clock_that_is_ahead_raises_an_alarm_and_the_work_goes_on(
    tables: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bus, ahead_s = OnePlace(), time.time() + 4_000 * 86_400
    monkeypatch.setattr(maintainer, "Care", partial(care.Care, now=lambda: ahead_s))
    (alarm,) = Started(tables, bus, monkeypatch, readings_days=40, merge_files_min=4).round()
    assert "No day of the table readings is dropped" in alarm
    assert len(active(tables)) == 1, "merged, and none gone"


@pytest.mark.parametrize(
    ("last_s", "due"),
    [
        pytest.param(None, True, id="never yet"),
        pytest.param(950.0, False, id="a moment ago"),
        pytest.param(900.0, True, id="long enough ago"),
        pytest.param(1_001.0, True, id="in the future: a clock was set back"),
    ],
)
def test_due(last_s: float | None, due: bool) -> None:
    assert is_due(last_s, 1_000.0, 100.0) == due
