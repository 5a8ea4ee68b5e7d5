"""Rule files: YAML, checked as a whole before anybody follows them."""

from collections.abc import Sequence

from tidegate.controller.settings import ControllerSettings
from tidegate.loop.rules import RuleSet
from tidegate.model.classes import DeviceClass
from tidegate.model.errors import UserError
from tidegate.settings import reading
from tidegate.settings.located import Located

# The loop's state has every plan that is under way twice, with what was so before it, and fits into one message.
LENGTH_MAX = 50_000


def read(text: str, name: str, settings: ControllerSettings, classes: Sequence[DeviceClass] = ()) -> RuleSet:
    """The rules that a text says; ``name`` is what people call it. An empty one says none."""
    if len(text) > LENGTH_MAX:
        raise too_long(name)
    document = Located(text, name)
    values = {} if document.values is None else document.values
    if not isinstance(values, dict):
        raise UserError(
            f"{document.place(())}: that is {reading.show(values)}: rules have the keys ranges, events and rules."
        )
    rules = reading.read(values, RuleSet, document.place, reading.YAML)
    try:
        settings.check(rules, classes)
    except UserError as error:
        raise UserError(f"{document.place(reading.parts(error.where))}: {error}") from None
    return rules


def too_long(name: str) -> UserError:
    return UserError(f"{name} is longer than {LENGTH_MAX:,} characters: shorten it, or split what it wants.")
