"""``tidegate demo``: the whole system, a flood without and with protection, and the verdict."""

import contextlib
import enum
import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console

from tidegate.cli.options import AsJson
from tidegate.model.errors import UserError
from tidegate.report.printing import print_report
from tidegate.report.streams import everything_else_to_stderr


class DemoPolicy(enum.StrEnum):
    GOTIN = "gotin"
    ADAPTIVE = "adaptive"


def demo(
    *,
    policy: Annotated[
        DemoPolicy,
        typer.Option(help="The send-rate policy of act 2."),
    ] = DemoPolicy.GOTIN,
    grow: Annotated[
        bool, typer.Option("--grow", help="Another scenario: the policy adaptive, and a chain that grows.")
    ] = False,
    headless: Annotated[bool, typer.Option("--headless", help="End with the verdict instead of staying up.")] = False,
    seconds: Annotated[float | None, typer.Option(min=5, max=120, help="How long each flood lasts.")] = None,
    controllers: Annotated[int, typer.Option(min=1, max=3, help="How many controllers run; one leads.")] = 1,
    kill_leader: Annotated[
        bool, typer.Option("--kill-leader", help="Kill the leading controller in the middle of act 2.")
    ] = False,
    deaf: Annotated[
        float | None, typer.Option(min=0.01, max=0.99, help="Share of the devices that do not listen to advice.")
    ] = None,
    picture: Annotated[Path | None, typer.Option(help="Also write the verdict as an SVG picture.")] = None,
    as_json: AsJson = False,
) -> None:
    """Start everything on this machine, flood it twice, and say whether protection helped.

    Exit status 0 where every check of the verdict holds, 1 where one does not.

    \b
    Examples:
      tidegate demo
      tidegate demo --headless --json
      tidegate demo --headless --controllers 2 --kill-leader
      tidegate demo --headless --deaf 0.5
      tidegate demo --headless --policy adaptive
      tidegate demo --headless --grow
    """
    from tidegate.demo.deafness import Deaf  # noqa: PLC0415 - what it imports is slow, and only it needs it
    from tidegate.demo.growing import Growing  # noqa: PLC0415
    from tidegate.demo.performance import Performance  # noqa: PLC0415
    from tidegate.demo.script import GROWING, Script  # noqa: PLC0415

    if grow and (kill_leader or picture is not None or deaf is not None):
        raise UserError("--kill-leader, --deaf and --picture belong to the flood in two acts: leave out --grow.")
    if deaf is not None and picture is not None:
        raise UserError("--picture shows a verdict in which everybody listens: leave it out with --deaf.")
    script = GROWING if grow else Script(deaf=deaf or 0.0)
    script = script if seconds is None else msgspec.structs.replace(script, flood_s=seconds)
    with everything_else_to_stderr() if as_json else contextlib.nullcontext():
        performance = (Growing if grow else Deaf if deaf is not None else Performance)(
            Console(stderr=as_json, width=None if sys.stderr.isatty() else 132),
            script,
            headless=headless or as_json,
            controllers=max(controllers, 2 if kill_leader else 1),
            kill_leader=kill_leader,
            picture_file=picture,
            policy=policy.value,
        )
        report = performance.perform()
    if as_json:
        print_report(report, as_json=True)
    raise typer.Exit(report.exit_status)
