"""``tidegate rules``: what shall be done when something happens, in the operator's own words."""

import time
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from tidegate.bus.audit import AuditLog
from tidegate.bus.client import Bus
from tidegate.bus.documents import RULES
from tidegate.bus.installation import load_installation
from tidegate.cli.input_files import name_of, text_of
from tidegate.cli.options import STATE, AsJson, Config, State
from tidegate.controller.foresight import leader_built_from
from tidegate.loop.rules import AppliedRules, RuleSet
from tidegate.model.errors import UserError
from tidegate.model.notices import sentence
from tidegate.settings import rules as rule_files
from tidegate.settings.tree import load

File = Annotated[str, typer.Argument(metavar="FILE", help="A rule file; - is standard input.")]

app = typer.Typer(no_args_is_help=True)


@app.callback()
def rules() -> None:
    """Event and plan: rules that come before the policies, changed while everything runs.

    \b
    Examples:
      tidegate rules check examples/rules/evening.yaml
      tidegate rules apply examples/rules/evening.yaml
      tidegate rules show
    """


@app.command()
def check(file: File, config: Config = None) -> None:
    """Say whether a rule file can be applied; a mistake is named with its line and column.

    \b
    Example:
      tidegate rules check examples/rules/evening.yaml
    """
    found = _read(file, config)[1]
    typer.echo(f"{name_of(file)} can be applied: {_counted(found)}.")


@app.command()
def apply(file: File, state: State = STATE, config: Config = None) -> None:
    """Let the rules of a file be followed from now on, in place of those before it.

    Nothing changes where it has a mistake. An empty file takes all rules back.

    \b
    Examples:
      tidegate rules apply examples/rules/evening.yaml
      tidegate rules apply - < /dev/null
    """
    text, found = _read(file, config)
    applied = AppliedRules(text=text, rules=found, name=name_of(file), applied_at_s=time.time())
    installation = load_installation(state)
    _check_slices(found, installation.slices)
    leader = leader_built_from(installation)
    if leader is not None:  # it would refuse what does not fit its own settings, and say so only in its log
        leader.controller.check(found, leader.classes)
        leader.controller.check_nodes(found)
    with Bus(installation.control_urls) as bus:
        bus.put(RULES, applied)
    typer.echo(f"{name_of(file)} is applied: {_counted(found)}.")


@app.command()
def show(
    state: State = STATE,
    last: Annotated[int, typer.Option(min=0, max=1000, help="How many of the newest events.")] = 10,
    as_json: AsJson = False,
) -> None:
    """Print the rules that are followed, and what fired when.

    \b
    Examples:
      tidegate rules show
      tidegate rules show --last 50 --json
    """
    with Bus(load_installation(state).control_urls) as bus:
        applied = bus.get(RULES)
        notices = AuditLog(bus).last_notices(last)
    if as_json:
        typer.echo(msgspec.json.encode({"applied": applied, "notices": notices}))
        return
    if applied is None:
        typer.echo("No rules have been applied.")
    else:
        when = _clock(applied.applied_at_s)
        typer.echo(f"# {applied.name}, applied {when}: {_counted(applied.rules)}\n{applied.text.rstrip()}\n")
    for notice in notices:
        typer.echo(f"{_clock(notice.at_s)}  {sentence(notice)}")


@app.command()
def schema() -> None:
    """Print the JSON schema of rule files, for editors.

    \b
    Example:
      tidegate rules schema > rules.schema.json
    """
    typer.echo(msgspec.json.format(msgspec.json.encode(msgspec.json.schema(RuleSet))))


def _read(file: str, config: Path | None) -> tuple[str, RuleSet]:
    settings = load(config)
    too_long = rule_files.too_long(name_of(file))
    text = text_of(file, rule_files.LENGTH_MAX, too_long, like="a rule file, like examples/rules/evening.yaml")
    return text, rule_files.read(text, name_of(file), settings.controller, settings.classes)


def _check_slices(found: RuleSet, slices: int) -> None:
    """Who only has the file does not know how many there are."""
    for rule in found.rules:
        beyond = [number for step in rule.plan for number in step.slices if number >= slices]
        if beyond:
            there_are = f"slices are 0 to {slices - 1}" if slices else "this installation has none"
            raise UserError(f"Rule {rule.name} moves slice {beyond[0]}, which there is not: {there_are}.")


def _counted(found: RuleSet) -> str:
    return f"{len(found.events)} event(s) and {len(found.rules)} rule(s)"


def _clock(at_s: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at_s))
