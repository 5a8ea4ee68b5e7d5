"""What waits between the brokers' acknowledgement and the tables, as values."""

import msgspec


class SliceBacklog(msgspec.Struct, frozen=True, kw_only=True):
    """One slice: what its log holds beyond the committed offset, and how old the first of that is."""

    slice: int
    last_sequence: int
    committed: int
    head_time_s: float | None  # when the message at committed + 1 was stored (Unix time); None where none waits
    head_age_s: float  # 0 where none waits

    @property
    def waiting(self) -> int:
        return max(0, self.last_sequence - self.committed)


class Backlog(msgspec.Struct, frozen=True, kw_only=True):
    """The whole chain at one moment. While there is an alarm (a sentence), the figures are a lower bound."""

    slices: tuple[SliceBacklog, ...]
    upstream_waiting: int  # acknowledged messages that have not reached their slice yet
    measured_at_s: float
    alarms: tuple[str, ...] = ()
    # What log and tables say against each other. What was committed may have been told a moment before the log was
    # asked, so this is believed when it stands.
    contradictions: tuple[str, ...] = ()
    # What fills the brokers and is no part of the backlog, each with its remedy. The figures are right all the same.
    warnings: tuple[str, ...] = ()

    @property
    def waiting(self) -> int:
        return self.upstream_waiting + sum(one.waiting for one in self.slices)

    @property
    def head_age_s(self) -> float:
        return max((one.head_age_s for one in self.slices), default=0.0)


class DiskState(msgspec.Struct, frozen=True, kw_only=True):
    """What a disk guard saw and did. ``alarm`` is a sentence, or None while there is room.

    ``removed`` is one about messages that it removed lately, because nobody could ever have read them.
    """

    used_share: float  # of the tightest budget: the brokers' own limit or the disk itself
    is_open: bool  # whether the brokers acknowledge telemetry
    alarm: str | None
    removed: str | None = None
