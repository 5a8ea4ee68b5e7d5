"""What the leader would do now, worked out beside it: the same loop on the same state, and nobody is told."""

import time
from collections.abc import Callable, Sequence

import msgspec

from tidegate.brokers.opening import open_brokers
from tidegate.bus.client import Bus
from tidegate.bus.documents import LOOP_STATE, MODE, RULES
from tidegate.controller.clock import LoopClock
from tidegate.controller.sensors import Sensors
from tidegate.controller.settings import ControllerSettings
from tidegate.loop.machine import Outcome
from tidegate.loop.rules import RuleSet
from tidegate.loop.state import LoopState
from tidegate.model.classes import DeviceClass
from tidegate.model.decisions import Mode
from tidegate.model.installation import Installation


def foresee(
    installation: Installation,
    settings: ControllerSettings,
    classes: Sequence[DeviceClass] = (),
    say: Callable[[str], None] = lambda _: None,
    lift: Callable[[Mode], Mode] = lambda mode: mode,
) -> tuple[Outcome, Mode]:
    """Look for as long as a rate needs to be known, then decide once. What is frozen is looked at as if it were not;
    ``lift``: in which mode, of the one that the operator has set."""
    with Bus(installation.control_urls) as bus:
        state, mode, applied = bus.get(LOOP_STATE) or LoopState(), bus.get(MODE) or Mode(), bus.get(RULES)
    clock = LoopClock()
    clock.not_before(state.at_s)
    loop = settings.control_loop(classes, RuleSet() if applied is None else applied.rules)
    sensors, brokers = Sensors(installation, name="plan", clock=clock), open_brokers(installation, name="plan-pages")
    try:
        rounds = int(settings.window_s / settings.period_s) + 2
        for number in range(rounds):
            observation = sensors.observe(brokers.states())
            if number + 1 == rounds:
                loop.resume(msgspec.structs.replace(state, pending=(), notices=()))
                return loop.tick(observation, lift(msgspec.structs.replace(mode, frozen=False))), mode
            loop.watch(observation)
            say(f"measuring, {settings.window_s - number * settings.period_s:.1f} s")
            time.sleep(settings.period_s)
    finally:
        sensors.close()
        brokers.close()
    raise AssertionError("there is a last round")
