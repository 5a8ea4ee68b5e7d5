"""``tidegate maintainer``: looks after the tables, until stopped."""

import signal
import sys
from typing import Annotated

import typer

from tidegate.cli.options import STATE, Config, State
from tidegate.cli.parent import call_without_parent
from tidegate.settings.tree import load, with_options


def run(
    name: Annotated[str | None, typer.Option(help="A name no other maintainer has.")] = None,
    state: State = STATE,
    config: Config = None,
    ends_with_parent: Annotated[bool, typer.Option(hidden=True)] = False,
) -> None:
    """Look after the tables: short logs, few files, no leftovers, no more days than are kept. 'up' starts one.

    \b
    Examples:
      tidegate maintainer
      tidegate maintainer --name maintainer-2 --config tidegate.toml
    """
    from tidegate.pipeline.maintenance.maintainer import Maintainer  # noqa: PLC0415 - slow to import

    settings = load(config)
    maintainer = Maintainer(
        state,
        with_options(settings.maintenance, {"name": name}),
        lambda line: print(line, file=sys.stderr, flush=True),  # noqa: T201
        fsync=settings.durable,
        identity_horizon_days=settings.node.identity_horizon_days,
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: maintainer.stop())
    if ends_with_parent:
        call_without_parent(maintainer.stop)
    maintainer.run()
