"""What the per-message path counts and reads: plain numbers of one process.

Counts are told to the shared memory ten times a second; a process that dies takes at most that along. The time is set
as often: to know that a device lives, and that its credits are plenty, needs no better one, and asking costs more than
the rest.
"""

from time import monotonic


class Tally:
    """Of all connections of a process. Numbers only grow."""

    def __init__(self) -> None:
        self.publishes = 0
        self.acknowledged = 0
        self.advised = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.now_s = monotonic()  # a tenth of a second ago, at most


class ClassTally:
    """Of one class of devices. ``devices`` is how many are connected now."""

    def __init__(self, name: str | None) -> None:
        self.name = name  # None: topics that no class asks for
        self.devices = 0
        self.publishes = 0
