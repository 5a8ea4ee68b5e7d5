"""What can be set about maintenance, and why each default is what it is."""

from typing import Annotated

import msgspec

from tidegate.model.errors import UserError

Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
Days = Annotated[int, msgspec.Meta(ge=0, le=36_500)]


class MaintenanceSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One maintainer. It may run beside any number of nodes; of several maintainers one works at a time."""

    # Off only where somebody else looks after the tables: without it every commit gets slower, for ever.
    enabled: bool = True
    name: Name = "maintainer-1"
    # Two files a batch, four batches a second: some 240 files of a node in this time, which a commit does not notice.
    every_s: Annotated[float, msgspec.Meta(ge=1, le=3_600)] = 30.0
    # Of one core, while there is work: after each step the maintainer rests, so that the stream does not notice it.
    share: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.25
    # Longer than any single step; a maintainer that is silent for this long lets the next one in.
    lease_s: Annotated[float, msgspec.Meta(ge=5, le=600)] = 60.0

    # At this size a file ends with the slice it holds, so that look-ups by slice skip the other files.
    file_mib_min: Annotated[int, msgspec.Meta(ge=1, le=1_024)] = 32
    # Files this large are left alone. A day of a thousand readings a second is about one such file per slice.
    file_mib_max: Annotated[int, msgspec.Meta(ge=1, le=8_192)] = 256
    # So many files of about one size are merged. More: rows are written less often, and more files are active.
    merge_files_min: Annotated[int, msgspec.Meta(ge=2, le=1_000)] = 8
    # Rows that are in memory at a time. The process takes about half a GiB with this.
    memory_mib: Annotated[int, msgspec.Meta(ge=16, le=16_384)] = 128
    # Above these a commit takes long: the maintainer no longer rests, and raises an alarm if that is not enough.
    active_files_max: Annotated[int, msgspec.Meta(ge=100)] = 4_000
    log_entries_max: Annotated[int, msgspec.Meta(ge=100)] = 4_000

    # A writer or reader whose view of the table is older than this has to open it again.
    log_retention_s: Annotated[int, msgspec.Meta(ge=60, le=31_536_000)] = 300
    # Whole hours, because Delta counts so. Nodes commit no file that is older than half an hour.
    vacuum_after_h: Annotated[int, msgspec.Meta(ge=1, le=8_760)] = 1
    vacuum_every_s: Annotated[float, msgspec.Meta(ge=1, le=86_400)] = 600.0

    # By date of arrival; 0 keeps them for ever. Data is nobody's to throw away unasked; rejects are for finding faults.
    readings_days: Days = 0
    means_days: Days = 0
    rejected_days: Days = 90

    def __post_init__(self) -> None:
        if self.file_mib_max < 2 * self.file_mib_min:
            raise ValueError(
                f"file_mib_max {self.file_mib_max} is less than twice file_mib_min {self.file_mib_min}: files could "
                "not be merged"
            )

    @property
    def days(self) -> dict[str, int]:
        """How many days each table is kept; 0 is for ever."""
        return {"readings": self.readings_days, "means": self.means_days, "rejected": self.rejected_days}


def check_retention(settings: MaintenanceSettings, identity_horizon_days: int) -> None:
    """What is dropped can no longer be recognised when it comes again."""
    if 0 < settings.readings_days <= identity_horizon_days:
        raise UserError(
            f"[maintenance] readings_days is {settings.readings_days}, and [node] identity_horizon_days is "
            f"{identity_horizon_days}: readings are recognised by the table, so keep them for longer than that."
        )
