"""``tidegate plan``: what would be done now, and why; ``apply``: do it."""

import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from tidegate.bus.audit import AuditLog
from tidegate.bus.client import Bus
from tidegate.bus.documents import APPLIED, APPLY, LEADER
from tidegate.bus.installation import load_installation
from tidegate.cli.options import STATE, AsJson, Config, State
from tidegate.cli.readable import readable
from tidegate.controller.foresight import foresee, leader_built_from
from tidegate.controller.replaying import BuiltFrom
from tidegate.loop.machine import Outcome
from tidegate.model.decisions import Applied, Apply, Decision, Mode
from tidegate.model.errors import UserError
from tidegate.model.installation import Installation
from tidegate.report.progress import Progress
from tidegate.settings.tree import load

WORD_S = 10.0  # so long the leader has to hear the operator's word, and as long again to carry it out
LOOK_S = 0.2


def plan(state: State = STATE, config: Config = None, as_json: AsJson = False) -> None:
    """Say what would be done now, and why; what is wanted and not done, and what stands between. Nothing is done.

    The settings are the leader's; those of --config count where no controller leads.

    \b
    Examples:
      tidegate plan
      tidegate plan --json
    """
    installation = load_installation(state)
    built_from = _built_from(installation, config)
    with Progress("plan") as progress:
        outcome, mode = foresee(installation, built_from, progress.update)
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

    What is printed first is what 'tidegate plan' says; what comes of it is the leader's answer.

    \b
    Examples:
      tidegate apply
      tidegate apply --yes
    """
    installation, word = load_installation(state), Apply(once=secrets.token_hex(8))
    built_from = _built_from(installation, config)
    with Progress("apply") as progress:
        outcome, mode = foresee(installation, built_from, progress.update, word.mode)
    _print(outcome, mode)
    if mode.frozen:
        raise UserError("All acting is frozen: 'tidegate release' it first.")
    if not any(proposal.recorded for proposal in outcome.proposals):
        return
    if not yes and not typer.confirm("Do it?", err=True):
        raise typer.Exit(1)
    for line in _applied(installation, word):
        typer.echo(line)


def _built_from(installation: Installation, config: Path | None) -> BuiltFrom:
    """The leader's settings: with others, something else would be foretold than it does."""
    own = load(config)
    found = leader_built_from(installation)
    if found is None:
        typer.echo("No controller that leads says its settings: this is with your own.", err=True)
        return BuiltFrom(controller=own.controller, classes=own.classes)
    return found


def _applied(installation: Installation, word: Apply) -> list[str]:
    """Tell the leader, and wait for what comes of this very word: others decide at the same time."""
    with Bus(installation.control_urls) as bus:
        if readable(bus, LEADER) is None:
            raise UserError("No controller leads at the moment: start one with 'tidegate controller', and try again.")
        audit = AuditLog(bus)
        before = audit.last_sequence()
        answer = _answered(bus, word)
        made: dict[str, Decision] = {}

        def is_complete() -> bool:
            made.update({one.plan: one for one in audit.after(before) if one.plan in answer.plans})
            return len(made) == len(answer.plans)

        _waited(is_complete)
    return [_told(plan, made.get(plan)) for plan in answer.plans] or ["Nothing was left to do."]


def _answered(bus: Bus, word: Apply) -> Applied:
    revision = bus.put(APPLY, word, revision=0, lease_s=WORD_S)
    if revision is None:
        raise UserError("Another 'tidegate apply' waits for its answer: try again in a few seconds.")
    if not _waited(lambda: bus.entry(APPLIED, word.once) is not None):
        bus.delete(APPLY, revision=revision)  # nobody shall obey it now
        raise UserError(
            f"The leader has not answered within {WORD_S:.0f} s: look at 'tidegate explain' and at its log, and try "
            "again."
        )
    answer = bus.get(APPLIED, word.once)
    if answer is None or not answer.measured:
        raise UserError("The leader could not measure at that moment, and has decided nothing: try again.")
    return answer


def _waited(condition: Callable[[], bool]) -> bool:
    until_s = time.monotonic() + WORD_S
    while not condition():
        if time.monotonic() > until_s:
            return False
        time.sleep(LOOK_S)
    return True


def _told(plan: str, decision: Decision | None) -> str:
    if decision is None:
        return f"Decided, and not carried out yet: 'tidegate explain {plan}' will say what became of it."
    return (
        f"Done: {decision.sentence}" if decision.acted else f"Not done: {decision.sentence} {decision.trouble}".rstrip()
    )


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
