"""What happened in a run, counted exactly: one tally for each class of devices, and one for the queue."""

from tidegate.sim.messages import SimulatedMessage


class LoadTally:
    """One class. Seconds of devices are summed over all that were connected."""

    def __init__(self) -> None:
        self.devices = self.devices_max = 0
        self.generated = 0.0
        self.sent = 0
        self.processed = self.readings_processed = 0
        self.delays_s: list[float] = []  # of messages whose service has begun
        self.age_s_sum = self.age_s_max = 0.0
        self.device_s = self.interval_area = self.interval_s_max = 0.0

    def connected(self) -> None:
        self.devices += 1
        self.devices_max = max(self.devices_max, self.devices)

    def left(self) -> None:
        self.devices -= 1

    def kept(self, interval_s: float, seconds: float) -> None:
        """A device kept to an interval for so long."""
        if seconds > 0:
            self.device_s += seconds
            self.interval_area += interval_s * seconds
            self.interval_s_max = max(self.interval_s_max, interval_s)

    def arrived(self) -> None:
        self.sent += 1

    def done(self, message: SimulatedMessage, now_s: float) -> None:
        age_s = now_s - message.middle_s
        self.processed += 1
        self.readings_processed += message.samples
        self.age_s_sum += age_s * message.samples
        self.age_s_max = max(self.age_s_max, age_s)


class QueueTally:
    """The queue's length over time, without what is being served."""

    __slots__ = ("_area", "_length", "_since_s", "length_max")

    def __init__(self) -> None:
        self._area = self._since_s = 0.0
        self._length = self.length_max = 0

    def changed(self, length: int, now_s: float) -> None:
        self._area += self._length * (now_s - self._since_s)
        self._length, self._since_s = length, now_s
        self.length_max = max(self.length_max, length)

    def mean(self, now_s: float) -> float:
        return (self._area + self._length * (now_s - self._since_s)) / now_s
