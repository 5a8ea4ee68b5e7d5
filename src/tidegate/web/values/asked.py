"""What devices are asked for now, or would be: in shadow mode decisions are made and nobody is told."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from tidegate.model.actions import Advise
from tidegate.model.advice import Advice
from tidegate.model.decisions import Decision
from tidegate.model.view import Sample, View, seconds
from tidegate.web.values.words import is_shadow

OTHERS = "others"


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """Intervals as advice has them: 0 leaves the default, and classes not in ``classes`` keep to ``interval_s``."""

    interval_s: float = 0.0
    classes: Mapping[str, float] = {}
    dead_bands: Mapping[str, float] = {}
    is_told: bool = True

    @property
    def holds_anybody(self) -> bool:
        return self.interval_s > 0 or any(self.classes.values()) or bool(self.dead_bands)

    @property
    def is_the_same_for_all(self) -> bool:
        return not self.dead_bands and all(interval_s == self.interval_s for interval_s in self.classes.values())

    def interval_of(self, name: str) -> float:
        return self.classes.get(name, self.interval_s)

    def of(self, name: str) -> str:
        """What one class is asked for, in words."""
        if name in self.dead_bands:
            return f"on changes {self.dead_bands[name]:.2g} times as large"
        interval_s = self.interval_of(name)
        return f"every {seconds(interval_s)}" if interval_s > 0 else "default"


def told(sample: Sample) -> Asked:
    """What devices kept to at a moment, as far as samples know: they have no dead bands."""
    return Asked(interval_s=sample.interval_s, classes=sample.classes)


def told_of(view: View) -> Asked:
    """What devices keep to now."""
    if view.now is None:
        return Asked()
    # Advice that is frozen runs out without a decision that says so.
    newest = [] if view.mode.frozen else _advice(view.decisions)[-1:]
    bands = [advice.dead_bands for decision, advice in newest if decision.acted]
    return msgspec.structs.replace(told(view.now), dead_bands=bands[0] if bands else {})


def asked_of(view: View) -> Asked:
    """What devices are asked for; in shadow mode what they would be, as the newest decision says."""
    if not is_shadow(view.mode):
        return told_of(view)
    made = untold(view.decisions)
    return made[-1][1] if made else Asked(is_told=False)


def untold(decisions: Sequence[Decision]) -> list[tuple[float, Asked]]:
    """When devices would have been asked, and for what, since somebody was really told."""
    found: list[tuple[float, Asked]] = []
    for decision, advice in reversed(_advice(decisions)):
        if decision.acted:
            break
        asked = Asked(interval_s=advice.interval_s, classes=advice.classes, dead_bands=advice.dead_bands, is_told=False)
        found.append((decision.at_s, asked))
    return found[::-1]


def others_of(view: View, apart: Iterable[str]) -> str:
    """The name of all devices that are not in the classes set apart: their one class, where that is clear."""
    rest = {name for gateway in view.chain.gateways for name in gateway.classes}.difference(apart)
    return rest.pop() if len(rest) == 1 else OTHERS


def _advice(decisions: Sequence[Decision]) -> list[tuple[Decision, Advice]]:
    """Decisions about advice."""
    return [(one, one.action.advice) for one in decisions if isinstance(one.action, Advise)]
