"""A decision made again from the audit alone: with the settings, the rules and the knowledge of its round."""

import msgspec

from tidegate.controller.settings import ControllerSettings
from tidegate.loop.machine import ControlLoop
from tidegate.loop.rounds import Replay, Round, replay
from tidegate.model.classes import DeviceClass
from tidegate.model.decisions import Decision


class BuiltFrom(msgspec.Struct, frozen=True, kw_only=True):
    """What a controller's loop is built from."""

    controller: ControllerSettings
    classes: tuple[DeviceClass, ...] = ()


def replayed(decision: Decision, played: Round, options: dict[str, object] | None = None) -> Replay:
    """What comes out of it now; with other ``options`` of the policy, if any are given."""
    return replay(_loop(played, options or {}), played, decision)


def _loop(played: Round, options: dict[str, object]) -> ControlLoop:
    built = msgspec.convert(played.settings, BuiltFrom)
    controller = built.controller
    if options:
        controller = msgspec.structs.replace(controller, options={**controller.options, **options})
    return controller.control_loop(built.classes)
