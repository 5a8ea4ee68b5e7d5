"""The rules that a controller follows: read again when the operator has applied others, and shown with what fired."""

from collections.abc import Callable, Sequence

from tidegate.controller.problems import Problems
from tidegate.controller.settings import ControllerSettings
from tidegate.loop.events import EventState
from tidegate.loop.machine import ControlLoop
from tidegate.loop.rules import AppliedRules, Rule
from tidegate.loop.state import LoopState
from tidegate.model.classes import DeviceClass
from tidegate.model.errors import UserError
from tidegate.model.notices import Notice
from tidegate.model.view import NOTICES_SHOWN, RulesState, RuleState

UNREADABLE, REFUSED = "rules that cannot be read", "rules that do not fit"  # kinds of problems


class Ruling:
    def __init__(
        self,
        loop: ControlLoop,
        settings: ControllerSettings,
        classes: Sequence[DeviceClass],
        say: Callable[[str], None],
        problems: Problems,
    ) -> None:
        self._loop, self._settings, self._classes, self._say = loop, settings, classes, say
        self._problems = problems
        self._read: AppliedRules | None = None
        self.followed: AppliedRules | None = None
        self.notices: tuple[Notice, ...] = ()

    def follow(self, applied: AppliedRules | None) -> None:
        """Rules that do not fit this controller's settings leave those in place that it has."""
        self._problems.end(UNREADABLE)
        if applied is None and self._read is None:
            self._loop.knows_rules = True  # that there are none
        if applied == self._read or applied is None:
            return
        self._read = applied
        try:
            self._settings.check(applied.rules, self._classes)
            self._settings.check_nodes(applied.rules)
        except UserError as error:
            sentence = f"The rules of {applied.name} are not followed: {error}"
            self._problems.begin(REFUSED, sentence, cause=sentence)
            self._loop.knows_rules = self.followed is not None
            return
        self._loop.knows_rules = True
        self._loop.follow(applied.rules, applied.applied_at_s)
        self.followed = applied
        self._problems.end(REFUSED)
        self._say(f"Rules of {applied.name}: {len(applied.rules.rules)} are followed.")

    def unreadable(self, sentence: str) -> None:
        """Whoever takes over then does not know which rules there were: their plans go on."""
        self._problems.begin(UNREADABLE, sentence)
        self._loop.knows_rules = self.followed is not None

    def noticed(self, more: Sequence[Notice]) -> None:
        self.notices = (*self.notices, *more)[-NOTICES_SHOWN:]

    def alarms(self, state: LoopState) -> tuple[str, ...]:
        stuck = [run for run in state.runs if run.state == "stuck"]
        said = [
            f"The plan of rule {run.plan.by} is {run.trouble}: put that right by hand, then 'tidegate rules apply' the "
            "rules again."
            for run in stuck
        ]
        return (*said, *self._loop.problems.values())

    def view(self, state: LoopState) -> RulesState:
        followed = self.followed
        rules = () if followed is None else followed.rules.rules
        return RulesState(
            name="" if followed is None else followed.name,
            applied_at_s=0.0 if followed is None else followed.applied_at_s,
            rules=tuple(_shown(rule, state) for rule in rules),
            events={name: event.active for name, event in state.events.items()},
            notices=self.notices,
        )


def _shown(rule: Rule, state: LoopState) -> RuleState:
    active = state.events.get(rule.on, EventState()).active
    run = next((run for run in reversed(state.runs) if run.plan.by == rule.name), None)
    if run is None:
        return RuleState(name=rule.name, on=rule.on, active=active, steps=len(rule.plan))
    return RuleState(
        name=rule.name,
        on=rule.on,
        active=active,
        plan=run.state,
        step=run.step + 1,
        steps=len(run.plan.steps),
        trouble=run.trouble,
    )
