"""What maintenance begins with: its settings, and tables that are not there or not ours."""

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from maintaining import care
from tidegate.model.errors import TidegateError, UserError
from tidegate.pipeline.maintenance.settings import MaintenanceSettings, check_retention
from tidegate.pipeline.maintenance.table import MaintainedTable
from tidegate.pipeline.tables.tables import LogTable
from tidegate.settings.tree import load


def test_settings_come_from_the_tree() -> None:
    settings = load(None, {"TIDEGATE_MAINTENANCE__READINGS_DAYS": "60"})
    assert settings.maintenance.days == {"readings": 60, "means": 0, "rejected": 90}
    with pytest.raises(UserError, match="file_mib_max 40 is less than twice file_mib_min 32"):
        load(None, {"TIDEGATE_MAINTENANCE__FILE_MIB_MAX": "40"})


def test_readings_are_kept_for_longer_than_identities_are_remembered() -> None:
    check_retention(MaintenanceSettings(), 7)
    check_retention(MaintenanceSettings(readings_days=8), 7)
    with pytest.raises(UserError, match=r"readings_days is 7, and \[node\] identity_horizon_days is 7"):
        check_retention(MaintenanceSettings(readings_days=7), 7)


def test_a_table_that_is_not_there_is_no_problem(directory: Path) -> None:
    assert not MaintainedTable(directory, "readings").exists
    LogTable(directory, "readings").claim({0: 1})
    assert MaintainedTable(directory, "readings").exists


def test_a_table_of_an_earlier_version_is_named(directory: Path) -> None:
    (directory / "readings").mkdir(parents=True)
    DeltaTable.create(str(directory / "readings"), schema=pa.schema([("slice", pa.int32())]))
    with pytest.raises(TidegateError, match="is not kept by date"):
        care(directory).compact()
