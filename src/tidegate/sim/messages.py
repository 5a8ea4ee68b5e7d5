"""A message on its way through the queue."""


class SimulatedMessage:
    """What a device sent. ``samples`` is how many samples it stands for, ``middle_s`` the middle of their times."""

    __slots__ = ("arrived_s", "cost", "device_class", "middle_s", "samples")

    def __init__(self, device_class: str, cost: float, arrived_s: float, samples: int, middle_s: float) -> None:
        self.device_class = device_class
        self.cost = cost
        self.arrived_s = arrived_s
        self.samples = samples
        self.middle_s = middle_s
