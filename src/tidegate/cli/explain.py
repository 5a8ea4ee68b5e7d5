"""``tidegate explain``: why the controller did what it did; ``freeze`` and ``release``: whether it may."""

import time
from collections.abc import Callable
from typing import Annotated

import msgspec
import typer

from tidegate.bus.audit import AuditLog
from tidegate.bus.client import Bus
from tidegate.bus.documents import MODE
from tidegate.bus.installation import load_installation
from tidegate.cli.options import STATE, AsJson, State
from tidegate.controller.acting import write_mode
from tidegate.model.decisions import Decision, Mode
from tidegate.model.errors import DamagedDocumentError
from tidegate.report.tables import show


def explain(
    state: State = STATE,
    last: Annotated[int, typer.Option(min=1, max=1000, help="How many decisions.")] = 10,
    as_json: AsJson = False,
) -> None:
    """Print the last decisions in full: what was seen, which rule applied, and what was not done instead.

    \b
    Examples:
      tidegate explain
      tidegate explain --last 3 --json
    """
    with Bus(load_installation(state).control_urls) as bus:
        decisions = AuditLog(bus).last(last)
    if as_json:
        typer.echo(msgspec.json.encode({"decisions": decisions}))
        return
    if not decisions:
        typer.echo("Nothing has been decided yet.")
    for decision in decisions:
        typer.echo(_told(decision))


def freeze(state: State = STATE) -> None:
    """Stop all acting at once: advice in force is left to lapse, nothing new is done until 'tidegate release'.

    \b
    Example:
      tidegate freeze
    """
    _change_mode(state, lambda mode: msgspec.structs.replace(mode, frozen=True))
    typer.echo("Frozen: nothing acts until 'tidegate release'.")


def release(state: State = STATE) -> None:
    """Let the controller act again after 'tidegate freeze'.

    \b
    Example:
      tidegate release
    """
    mode = _change_mode(state, lambda mode: msgspec.structs.replace(mode, frozen=False))
    typer.echo(f"Released: send-rate protection is {mode.send_rate}.")


def _change_mode(state: State, change: Callable[[Mode], Mode]) -> Mode:
    with Bus(load_installation(state).control_urls) as bus:
        try:
            mode = bus.get(MODE) or Mode()
        except DamagedDocumentError:
            mode = Mode()  # it is written anew
        mode = change(mode)
        write_mode(bus, mode)
    return mode


def _told(decision: Decision) -> str:
    """The sentence first, then what it rests on."""
    reason = decision.action.reason
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(decision.at_s))
    measurements = ", ".join(f"{name} {show(value)}" for name, value in reason.measurements.items())
    carried_out = "" if decision.acted else " (not carried out)"
    return "\n".join(
        (
            f"{when}  {decision.sentence}{carried_out}",
            f"  seen       {measurements}",
            f"  rule       {reason.rule}",
            f"  not taken  {reason.rejected}",
            f"  by         {decision.controller}, phase {decision.phase}",
            "",
        )
    )
