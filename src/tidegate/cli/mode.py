"""What the controller may do: ``mode`` by policy, ``freeze`` and ``release`` for all at once."""

from collections.abc import Mapping
from typing import Annotated

import msgspec
import typer

from tidegate.bus.client import Bus
from tidegate.bus.documents import MODE
from tidegate.bus.installation import load_installation
from tidegate.cli.options import STATE, AsJson, State
from tidegate.controller.acting import change_mode
from tidegate.model.decisions import MODES, POLICIES, Mode
from tidegate.model.errors import UserError

_WORDS = ", ".join(MODES)


def mode(
    *,
    send_rate: Annotated[str | None, typer.Option(help=f"How often devices send: {_WORDS}.")] = None,
    nodes: Annotated[str | None, typer.Option(help="How many processing nodes run; the same words.")] = None,
    slices: Annotated[str | None, typer.Option(help="Which node works on which slice.")] = None,
    routes: Annotated[str | None, typer.Option(help="Which brokers new clients go to.")] = None,
    cohort_share: Annotated[float | None, typer.Option(help="How large a cohort is, above 0 and up to 1.")] = None,
    state: State = STATE,
    as_json: AsJson = False,
) -> None:
    """Say what each policy may do, or change it.

    \b
    Examples:
      tidegate mode
      tidegate mode --send-rate cohort --cohort-share 0.05
      tidegate mode --nodes shadow
    """
    if cohort_share is not None and not 0 < cohort_share <= 1:
        raise UserError(f"--cohort-share is {cohort_share:g}: a share is above 0 and at most 1.")
    wanted = {"send_rate": send_rate, "nodes": nodes, "slices": slices, "routes": routes, "cohort_share": cohort_share}
    said = {name: value for name, value in wanted.items() if value is not None}
    found = _change_mode(state, said)
    if as_json:
        typer.echo(msgspec.json.encode(found))
        return
    for name in POLICIES:
        share = f" ({found.cohort_share:.0%})" if getattr(found, name) == "cohort" else ""
        typer.echo(f"{name.replace('_', '-'):9}  {getattr(found, name)}{share}")
    if found.frozen:
        typer.echo("All acting is frozen until 'tidegate release'.")


def freeze(state: State = STATE) -> None:
    """Stop all acting at once: advice in force is left to lapse, nothing new is done until 'tidegate release'.

    \b
    Example:
      tidegate freeze
    """
    _change_mode(state, {"frozen": True})
    typer.echo("Frozen: nothing acts until 'tidegate release'.")


def release(state: State = STATE) -> None:
    """Let the controller act again after 'tidegate freeze'.

    \b
    Example:
      tidegate release
    """
    found = _change_mode(state, {"frozen": False})
    typer.echo(f"Released: send-rate protection is {found.send_rate}.")


def _change_mode(state: State, changes: Mapping[str, object]) -> Mode:
    """As it is then. One that is damaged and not changed is an error: nobody knows what is allowed."""
    with Bus(load_installation(state).control_urls) as bus:
        return change_mode(bus, changes, _warn) if changes else bus.get(MODE) or Mode()


def _warn(sentence: str) -> None:
    typer.echo(sentence, err=True)
