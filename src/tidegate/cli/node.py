"""``tidegate node``: one processing node, until stopped."""

import signal
import sys
from typing import Annotated

import typer

from tidegate.cli.options import STATE, Config, State
from tidegate.cli.parent import call_without_parent
from tidegate.settings.tree import load, with_options


def run(
    name: Annotated[str | None, typer.Option(help="A name no other node has.")] = None,
    state: State = STATE,
    config: Config = None,
    ends_with_parent: Annotated[bool, typer.Option(hidden=True)] = False,
    cost_us_per_record: Annotated[float | None, typer.Option(help="Time each record takes on its core.")] = None,
) -> None:
    """Run one processing node: a Spark query over the slices that are assigned to it.

    \b
    Examples:
      tidegate node --name node-2
      tidegate node --name slow --cost-us-per-record 500
    """
    from tidegate.pipeline.node import Node  # noqa: PLC0415 - Spark is slow to import, and only this command needs it

    settings = load(config)
    chosen = with_options(settings.node, {"name": name, "cost_us_per_record": cost_us_per_record})
    node = Node(state, chosen, lambda line: print(line, file=sys.stderr, flush=True), fsync=settings.durable)  # noqa: T201
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: node.stop())
    if ends_with_parent:
        call_without_parent(node.stop)
    node.run()
