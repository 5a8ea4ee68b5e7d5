"""What the per-message path counts: plain numbers of one process, told to the shared memory every few hundredths of a
second. A process that dies takes at most that along.
"""


class Tally:
    """Of all connections of a process. Numbers only grow."""

    def __init__(self) -> None:
        self.publishes = 0
        self.acknowledged = 0
        self.advised = 0
        self.bytes_in = 0
        self.bytes_out = 0


class ClassTally:
    """Of one class of devices. ``devices`` is how many are connected now."""

    def __init__(self, name: str | None) -> None:
        self.name = name  # None: topics that no class asks for
        self.devices = 0
        self.publishes = 0
