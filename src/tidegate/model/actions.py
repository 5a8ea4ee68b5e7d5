"""Actions: the one thing that an executor does, as a type of its own. What it writes is what others follow."""

import msgspec

from tidegate.model.advice import Advice
from tidegate.model.intents import Algorithm
from tidegate.model.routes import Routes


class _Action(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    pass


class Advise(_Action, frozen=True, kw_only=True, tag="advise"):
    """Tell devices how often they may send."""

    advice: Advice


class ScaleNodes(_Action, frozen=True, kw_only=True, tag="scale"):
    """Ask for a number of processing nodes."""

    nodes_wanted: int


class MoveSlices(_Action, frozen=True, kw_only=True, tag="move"):
    """Send slices to processing nodes: the taker of each."""

    takers: dict[int, str]


class Route(_Action, frozen=True, kw_only=True, tag="route"):
    """Say which brokers new clients go to."""

    routes: Routes


class Reconfigure(_Action, frozen=True, kw_only=True, tag="reconfigure"):
    """Let policies follow other algorithms, or the same with other options."""

    policies: dict[str, Algorithm]


Action = Advise | ScaleNodes | MoveSlices | Route | Reconfigure


def kind_of(action: Action) -> str:
    """The word for it in the audit log, in metrics and on the dashboard."""
    return str(action.__struct_config__.tag)
