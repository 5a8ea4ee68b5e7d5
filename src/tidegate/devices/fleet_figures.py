"""What a fleet of simulated devices tells about itself: every second, and at its end."""

import msgspec


class FleetProgress(msgspec.Struct, frozen=True, kw_only=True):
    """A moment of a fleet; counters since it began."""

    at_s: float
    devices: int  # wanted
    connected: int
    samples: int
    sent: int
    acked: int
    resent: int
    reconnects: int
    interval_s_mean: float
    late_s_max: float


class FleetSummary(msgspec.Struct, frozen=True, kw_only=True):
    """How it went. ``readings`` is how many samples the acknowledged messages stand for."""

    samples: int
    sent: int
    acked: int
    readings: int
    resent: int
    reconnects: int
    kept_schedule: bool
    late_s_max: float
    seconds: float

    @property
    def is_complete(self) -> bool:
        return self.readings == self.samples
