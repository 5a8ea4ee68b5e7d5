"""What is promised to devices, whatever a policy or a rule wants.

* A class that is never delayed is never asked to send less often.
* Devices that send on change cannot keep an interval: they get a wider dead band in its place.
* Nobody begins to be held unless an overload is proven: nodes at their limit, or the event. What was learnt of the
  nodes in calm, or while one started, is no proof. An operator's rule needs none.
* Nobody is let go at once because the controllers are away: advice that has lapsed shrinks by and by.
"""

from collections.abc import Sequence

from tidegate.control.send_rate import dead_bands
from tidegate.control.send_rate.dead_bands import Band
from tidegate.loop.events import OVERLOAD
from tidegate.loop.families import interval_of
from tidegate.loop.knowledge import Knowledge
from tidegate.model.classes import DeviceClass
from tidegate.model.intents import Pace

# A band is heard with a device's next message, and shows in a rate a window later.
PAUSE_S = 4.0
PROVEN_SHARE = 0.3  # of the nodes' time, at their limit


class Promises:
    """``default_rate_per_s`` is what a device sends that nobody advises, where its class does not say it. In
    ``half_life_s`` advice that has lapsed shrinks to half."""

    def __init__(
        self, classes: Sequence[DeviceClass] = (), default_rate_per_s: float = 2.0, half_life_s: float = 0.0
    ) -> None:
        self.half_life_s = half_life_s
        self._spared = tuple(one.name for one in classes if one.never_delay)
        self._driven = {
            one.name: 1.0 / one.default_interval_s if one.default_interval_s else default_rate_per_s
            for one in classes
            if one.event_driven and not one.never_delay
        }

    def begin_unproven(self, before: dict[str, Pace], wanted: dict[str, Pace], knowledge: Knowledge) -> tuple[str, ...]:
        """Who would be held now, was not, and nothing shows that it has to be."""
        chain = knowledge.chain
        at_limit = chain.get("nodes_at_limit", 0.0) > 0 or chain.get("busy_share", 0.0) >= PROVEN_SHARE
        if at_limit or OVERLOAD in knowledge.events:
            return ()
        return tuple(name for name, pace in wanted.items() if pace.holds and not _holds(before, name))

    def broken_by(self, wanted: dict[str, Pace]) -> tuple[str, ...]:
        """The classes that would be delayed and never may be."""
        return tuple(name for name in self._spared if _holds(wanted, name))

    def kept(
        self, wanted: dict[str, Pace], bands: dict[str, Band], knowledge: Knowledge
    ) -> tuple[dict[str, Pace], dict[str, Band]]:
        """The same, as it may be said; and the dead bands that were worked out for it, for the next time."""
        said = wanted | dict.fromkeys(self.broken_by(wanted), Pace(interval_s=0.0))
        found = {}
        for name, demand in self._driven.items():
            interval_s = interval_of(said, name)
            if name in wanted and wanted[name].interval_s is None:
                said[name] = Pace(interval_s=0.0, dead_band=wanted[name].dead_band)  # whoever wants it knows of bands
            elif interval_s > 0:
                found[name] = self._band(bands.get(name), demand, interval_s, knowledge, name)
                said[name] = Pace(interval_s=0.0, dead_band=found[name].width)
        return said, found

    def longest_s(self, said: dict[str, Pace]) -> float:
        """About how long a device is silent under its dead band, if what it measures is a random walk."""
        gaps_s = [said[name].dead_band ** 2 / demand for name, demand in self._driven.items() if name in said]
        return max(gaps_s, default=0.0)

    def _band(self, before: Band | None, demand: float, interval_s: float, knowledge: Knowledge, name: str) -> Band:
        seen = knowledge.properties.get(f"class/{name}", {})
        devices = seen.get("devices", 0.0)
        return dead_bands.widened(
            before,
            at_s=knowledge.at_s,
            demand=demand,
            wanted=1.0 / interval_s,
            measured=seen.get("arrival_per_s", 0.0) / devices if devices else 0.0,
            pause_s=knowledge.at_s - knowledge.measured_at_s + PAUSE_S,
        )


def _holds(wanted: dict[str, Pace], name: str) -> bool:
    return interval_of(wanted, name) > 0 or (name in wanted and wanted[name].dead_band > 1)
