"""``tidegate plan``: what would be done now, and why; ``apply``: do it."""

import secrets
import time
from typing import Annotated

import msgspec
import typer

from tidegate.bus.audit import AuditLog
from tidegate.bus.client import Bus
from tidegate.bus.documents import APPLY, LEADER
from tidegate.bus.installation import load_installation
from tidegate.cli.options import STATE, AsJson, Config, State
from tidegate.cli.readable import readable
from tidegate.controller.foresight import foresee
from tidegate.loop.machine import Outcome
from tidegate.model.decisions import Apply, Decision, Mode
from tidegate.model.errors import UserError
from tidegate.model.installation import Installation
from tidegate.report.progress import Progress
from tidegate.settings.tree import load

WORD_S = 10.0  # so long the leader has to hear the operator's word


def plan(state: State = STATE, config: Config = None, as_json: AsJson = False) -> None:
    """Say what would be done now, and why; what is wanted and not done, and what stands between. Nothing is done.

    \b
    Examples:
      tidegate plan
      tidegate plan --json
    """
    settings = load(config)
    with Progress("plan") as progress:
        outcome, mode = foresee(load_installation(state), settings.controller, settings.classes, progress.update)
    if as_json:
        shown = {"mode": mode, "proposals": outcome.proposals, "withheld": outcome.withheld}
        typer.echo(msgspec.json.encode(shown))
        return
    _print(outcome, mode)


def apply(
    state: State = STATE,
    config: Config = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Let the leader do once what it wants to do now, also where a policy is in shadow mode.

    \b
    Examples:
      tidegate apply
      tidegate apply --yes
    """
    installation, settings = load_installation(state), load(config)
    word = Apply(once=secrets.token_hex(8))
    with Progress("apply") as progress:
        outcome, mode = foresee(installation, settings.controller, settings.classes, progress.update, word.mode)
    _print(outcome, mode)
    if mode.frozen:
        raise UserError("All acting is frozen: 'tidegate release' it first.")
    if not any(proposal.recorded for proposal in outcome.proposals):
        return
    if not yes and not typer.confirm("Do it?", err=True):
        raise typer.Exit(1)
    for decision in _applied(installation, word):
        typer.echo(f"Done: {decision.sentence}" if decision.acted else f"Not done: {decision.sentence}")


def _applied(installation: Installation, word: Apply) -> tuple[Decision, ...]:
    """Tell the leader, and wait for what it decides."""
    with Bus(installation.control_urls) as bus:
        if readable(bus, LEADER) is None:
            raise UserError("No controller leads at the moment: start one with 'tidegate controller', and try again.")
        audit = AuditLog(bus)
        before = audit.last_sequence()
        bus.put(APPLY, word, lease_s=WORD_S)
        until_s = time.monotonic() + WORD_S
        while (now := audit.last_sequence()) == before:
            if time.monotonic() > until_s:
                raise UserError(
                    f"The leader has decided nothing within {WORD_S:.0f} s: look at 'tidegate plan' and at its log, "
                    "and try again."
                )
            time.sleep(0.2)
        return audit.last(now - before)


def _print(outcome: Outcome, mode: Mode) -> None:
    if mode.frozen:
        typer.echo("All acting is frozen. If it were not:")
    made = [proposal for proposal in outcome.proposals if proposal.recorded]
    for proposal in made:
        shadow = "" if proposal.acts else " (shadow mode: only written down)"
        typer.echo(f"{proposal.sentence}{shadow}\n  rule       {proposal.reason.rule}")
        typer.echo(f"  not taken  {proposal.reason.rejected}")
    if not made:
        typer.echo("Nothing would be done: what is in force is what is wanted.")
    for withheld in outcome.withheld:
        typer.echo(withheld.sentence)
