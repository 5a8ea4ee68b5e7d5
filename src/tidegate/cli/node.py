"""``tidegate node``: one processing node, until stopped."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Annotated

import typer

from tidegate.cli.options import STATE, Config, State
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
        threading.Thread(target=_watch_parent, args=(os.getppid(), node.stop), daemon=True).start()
    node.run()


def _watch_parent(parent: int, stop: Callable[[], None]) -> None:
    """A node that ``tidegate up`` started must not outlive it, however that ended."""
    while os.getppid() == parent:
        time.sleep(0.5)
    stop()
