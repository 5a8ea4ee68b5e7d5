"""What a run found out, as plain values.

Times are seconds, rates messages per second. *Queueing delay* is from a message's arrival to the begin of its service.
*Age of data* is from the middle of a message's samples to the end of its service; its mean is over readings, so a
message that stands for three samples counts three times. *Send interval* is the interval in force, averaged over the
time of all connected devices.
"""

from typing import Any

import msgspec


class ClassResult(msgspec.Struct, frozen=True, kw_only=True):
    """One class of devices, or all of them."""

    devices_max: int  # connected at one time; of all classes together, the sum
    generated: float  # demand: messages that devices would have sent at their default
    sent: int
    processed: int  # whose service ended within the run
    readings: int  # samples that the processed messages stand for
    delay_mean_s: float  # over messages whose service has begun
    delay_p95_s: float
    delay_max_s: float
    delay_all_mean_s: float  # the same with what still waits at the end, at the time waited so far
    age_mean_s: float
    age_max_s: float
    interval_mean_s: float
    interval_max_s: float


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """One value per second: of the moment, or over the second that ends there."""

    at_s: list[float]
    demand_per_s: list[float]
    arrivals: list[int]
    departures: list[int]
    capacity_per_s: list[float]  # the true one
    estimate_per_s: list[float | None]  # the policy's idea of it
    waiting: list[int]  # in the queue and in service
    head_age_s: list[float]
    delay_s: list[float]  # mean queueing delay of what began to be served in that second; 0 where nothing did
    interval_s: list[float]  # advised to devices in general; 0 where they keep their default
    nodes_working: list[int]
    devices: list[int]
    phase: list[str]


class Result(ClassResult, frozen=True, kw_only=True):
    """One run: the figures of all devices together, then of each class."""

    scenario: str
    strategy: str
    policy: str
    seed: int
    seconds: float
    waiting_end: int  # in the queue and in service when the run ended
    queue_length_mean: float  # without what is being served
    queue_length_max: int
    node_seconds: float  # from the wish for a node to its end
    nodes_mean: float
    decisions: int  # changes of advice or of the number of nodes
    classes: dict[str, ClassResult]
    series: Series

    def row(self) -> dict[str, Any]:
        """Everything but the series."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        names = ("scenario", "strategy", "policy", "seed", "seconds")
        return {name: plain[name] for name in names} | {
            name: value for name, value in plain.items() if name not in (*names, "series")
        }
