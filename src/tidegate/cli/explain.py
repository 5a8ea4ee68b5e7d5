"""``tidegate explain``: why the controller did what it did."""

import time
from typing import Annotated

import msgspec
import typer

from tidegate.bus.audit import DAMAGED_MAX, AuditLog, Newest
from tidegate.bus.client import Bus
from tidegate.bus.documents import AUDIT
from tidegate.bus.installation import load_installation
from tidegate.cli.options import STATE, AsJson, State
from tidegate.controller.replaying import replayed
from tidegate.loop.rounds import Replay
from tidegate.model.decisions import Decision
from tidegate.model.errors import DamagedDocumentError, UserError
from tidegate.report.progress import Progress
from tidegate.report.tables import show


def explain(
    number: Annotated[int | None, typer.Argument(metavar="[N]", min=1, help="The number of one decision.")] = None,
    replay: Annotated[bool, typer.Option("--replay", help="Make the decision again, and compare.")] = False,
    state: State = STATE,
    last: Annotated[int, typer.Option(min=1, max=1000, help="How many decisions.")] = 10,
    as_json: AsJson = False,
) -> None:
    """Print decisions in full: what was seen, which rule applied, and what was not done instead.

    With --replay a decision is made again, by the same code, from what the audit has of its round.
    Exit status 1: it does not come out the same.

    \b
    Examples:
      tidegate explain
      tidegate explain --last 3 --json
      tidegate explain 17 --replay
    """
    if replay and number is None:
        raise UserError("Which decision shall be made again? Name its number: 'tidegate explain 17 --replay'.")
    with Bus(load_installation(state).control_urls) as bus:
        audit = AuditLog(bus)
        if number is not None:
            decision = _found(audit, number)
            again = _again(audit, decision) if replay else None
            found = Newest((decision,), ())
        else:
            found, again = audit.newest(last), None
        since_s = audit.since_s()
    if as_json:
        shown = {"complete_since_s": since_s, "decisions": found.records, "damaged": found.damaged, "replay": again}
        typer.echo(msgspec.json.encode(shown))
    else:
        _print(found, since_s)
        if again is not None:
            typer.echo(_compared(again))
    if again is not None and not again.equal:
        raise typer.Exit(1)


def _found(audit: AuditLog, number: int) -> Decision:
    with Progress("explain") as progress:
        progress.update(f"looking for decision {number}, from the newest on")
        found = audit.find(str(number))
    if not found.records:
        perhaps = f", or is among those that are not shown ({_damage(found.damaged)})" if found.damaged else ""
        raise UserError(f"Decision {number} is not in the audit{perhaps}: 'tidegate explain' shows the newest ones.")
    return found.records[0]


def _again(audit: AuditLog, decision: Decision) -> Replay:
    try:
        played = audit.round(decision.round)
    except DamagedDocumentError:
        raise UserError(
            f"What decision {decision.plan} looked at is damaged: it cannot be made again; replay another one."
        ) from None
    if played is None:
        raise UserError(
            f"What decision {decision.plan} looked at is not kept any more: rounds are kept for less long than "
            "decisions."
        )
    try:
        return replayed(decision, played)
    except (msgspec.ValidationError, UserError) as error:
        raise UserError(
            f"Decision {decision.plan} was made by another version, whose settings this one does not know ({error}): "
            "replay it with that version."
        ) from None


def _print(found: Newest[Decision], since_s: float | None) -> None:
    if not found.records:
        typer.echo("No decision can be read." if found.damaged else "Nothing has been decided yet.")
    for decision in found.records:
        typer.echo(_told(decision))
    if found.damaged:
        typer.echo(f"Not shown: {_damage(found.damaged)}.")
    if since_s is not None:
        typer.echo(f"The audit is complete since {_clock(since_s)}.")


def _damage(damaged: tuple[int, ...]) -> str:
    """How many, and the first and the last of their numbers in the stream: they need not follow each other."""
    number, first, last = len(damaged), damaged[0], damaged[-1]
    many = f"at least {number:,}" if number >= DAMAGED_MAX else f"{number:,}"
    which = f"number {first}" if number == 1 else f"numbers {first} to {last}"
    return f"{many} damaged record(s) of the stream {AUDIT.stream}, {which}"


def _compared(again: Replay) -> str:
    if again.equal:
        return "Made again from the audit, it comes out the same."
    other = "" if again.again is None else f" It would be: {again.again.sentence}"
    return f"Made again from the audit, it comes out otherwise, in {', '.join(again.differs)}.{other}"


def _clock(at_s: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at_s))


def _told(decision: Decision) -> str:
    """The sentence first, then what it rests on."""
    reason = decision.reason
    measurements = ", ".join(f"{name} {show(value)}" for name, value in reason.measurements.items())
    carried_out = "" if decision.acted else f" ({decision.not_done})"
    return "\n".join(
        (
            f"{decision.plan}  {_clock(decision.at_s)}  {decision.sentence}{carried_out}",
            f"  seen       {measurements}",
            f"  rule       {reason.rule}",
            f"  not taken  {reason.rejected}",
            f"  expected   {decision.expects.words if decision.expects is not None else '-'}",
            f"  by         {decision.controller}, for {decision.by}",
            "",
        )
    )
