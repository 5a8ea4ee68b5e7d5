"""What an algorithm of another field needs to speak of send rates: a queueing delay, and a fair share of one rate.

The rate of a whole fleet is split evenly. Clamps, each with its reason:

* The default from above: nobody is asked for more, and a share that reaches it holds nobody.
* ``min_share`` of the default from below: a device hears its next rate only with its next message. These algorithms
  were made for receivers that can be told at once, and on their way down some would silence devices for minutes.
"""

from tidegate.control.policy import Seen, Verdict
from tidegate.model.advice import RATE_PER_S_MIN


def even_share(total_per_s: float, devices: int, *, default_rate_per_s: float, min_share: float) -> float | None:
    """Messages per second and device; None where the default may stay."""
    if devices <= 0:
        return None
    rate = max(total_per_s / devices, min_share * default_rate_per_s, RATE_PER_S_MIN)
    return None if rate >= default_rate_per_s else rate


def service_s(seen: Seen) -> float:
    """How long one message is in service, as far as it is known."""
    return 1.0 / seen.node_rate_per_s if seen.node_rate_per_s else 0.0


def queueing_delay_s(seen: Seen) -> float:
    """How long the oldest message has waited, without the time that its own service takes."""
    return max(0.0, seen.head_age_s - service_s(seen))


def shared_verdict(rate: float | None, capacity_per_s: float | None, rule: str) -> Verdict:
    rejected = "hold the devices: their default fits" if rate is None else "leave devices at their default: too much"
    return Verdict(
        phase="idle" if rate is None else "protect",
        rate_per_device=rate,
        capacity_per_s=capacity_per_s,
        rule=rule,
        rejected=rejected,
    )
