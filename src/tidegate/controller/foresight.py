"""What the leader would do now, worked out beside it: the same loop on the same state, and nobody is told."""

import time
from collections.abc import Callable

import msgspec

from tidegate.brokers.opening import open_brokers
from tidegate.bus.client import Bus
from tidegate.bus.documents import LEADER, LEADER_SETTINGS, LOOP_STATE, MODE, RULES
from tidegate.controller.clock import LoopClock
from tidegate.controller.replaying import BuiltFrom
from tidegate.controller.sensors import Sensors
from tidegate.loop.machine import Outcome
from tidegate.loop.rules import AppliedRules
from tidegate.loop.state import LoopState
from tidegate.model.decisions import Mode
from tidegate.model.errors import DamagedDocumentError, UserError
from tidegate.model.installation import Installation


def leader_built_from(installation: Installation) -> BuiltFrom | None:
    """What the leader says its loop is built from; None where nobody leads, or another version does."""
    try:
        with Bus(installation.control_urls) as bus:
            leader, said = bus.get(LEADER), bus.get(LEADER_SETTINGS)
        found = msgspec.convert(said, BuiltFrom | None)
    except (DamagedDocumentError, msgspec.ValidationError, UserError):
        return None
    same = leader is not None and found is not None and found.controller.name == leader.name
    return found if same else None


def foresee(
    installation: Installation,
    built_from: BuiltFrom,
    say: Callable[[str], None] = lambda _: None,
    lift: Callable[[Mode], Mode] = lambda mode: mode,
) -> tuple[Outcome, Mode]:
    """Look for as long as a rate needs to be known, then decide once. What is frozen is looked at as if it were not;
    ``lift``: in which mode, of the one that the operator has set."""
    settings, clock = built_from.controller, LoopClock()
    clock.not_before(_standing(installation)[0].at_s)
    loop = settings.control_loop(built_from.classes)
    sensors, brokers = Sensors(installation, name="plan", clock=clock), open_brokers(installation, name="plan-pages")
    try:
        for number in range(int(settings.window_s / settings.period_s) + 1):
            loop.watch(sensors.observe(brokers.states()))
            say(f"measuring, {settings.window_s - number * settings.period_s:.1f} s")
            time.sleep(settings.period_s)
        observation = sensors.observe(brokers.states())
    finally:
        sensors.close()
        brokers.close()
    # Last of all: what was decided while this one measured is not decided again.
    state, mode, applied = _standing(installation)
    if applied is not None:
        loop.follow(applied.rules, applied.applied_at_s)
    loop.resume(msgspec.structs.replace(state, pending=(), notices=()))
    lifted = lift(msgspec.structs.replace(mode, frozen=False))
    return loop.tick(observation, lifted, max(observation.at_s, state.at_s)), mode


def _standing(installation: Installation) -> tuple[LoopState, Mode, AppliedRules | None]:
    """What the leader goes on from, and what the operator wants."""
    with Bus(installation.control_urls) as bus:
        return bus.get(LOOP_STATE) or LoopState(), bus.get(MODE) or Mode(), bus.get(RULES)
