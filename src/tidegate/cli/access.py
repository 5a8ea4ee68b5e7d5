"""``tidegate access``: what devices and applications may publish and subscribe to."""

import time
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from tidegate.bus.client import Bus
from tidegate.bus.documents import ACCESS
from tidegate.bus.installation import load_installation
from tidegate.cli.input_files import name_of, text_of
from tidegate.cli.options import STATE, AsJson, Config, State
from tidegate.model.identity import Access, AppliedAccess
from tidegate.settings import access as access_files
from tidegate.settings.tree import load

File = Annotated[str, typer.Argument(metavar="FILE", help="An access file; - is standard input.")]

app = typer.Typer(no_args_is_help=True)


@app.callback()
def access() -> None:
    """Who may publish and subscribe to what, changed while everything runs.

    \b
    Examples:
      tidegate access check examples/identity/access.yaml
      tidegate access apply examples/identity/access.yaml
      tidegate access show
    """


@app.command()
def check(file: File) -> None:
    """Say whether an access file can be applied; a mistake is named with its line and column.

    \b
    Example:
      tidegate access check examples/identity/access.yaml
    """
    found = _read(file)
    typer.echo(f"{name_of(file)} can be applied: {_counted(found)}.")


@app.command()
def apply(file: File, state: State = STATE) -> None:
    """Let gateways go by a file from now on, for clients that come and for those that are connected.

    Nothing changes where it has a mistake. An empty file takes it back: what the settings say counts again.

    \b
    Examples:
      tidegate access apply examples/identity/access.yaml
      tidegate access apply - < /dev/null
    """
    found = _read(file)
    with Bus(load_installation(state).control_urls) as bus:
        if found is None:
            bus.delete(ACCESS)
        else:
            bus.put(ACCESS, AppliedAccess(access=found, name=name_of(file), applied_at_s=time.time()))
    typer.echo(f"{name_of(file)} is applied: {_counted(found)}.")


@app.command()
def show(state: State = STATE, config: Config = None, as_json: AsJson = False) -> None:
    """Print what counts now: what was applied, or else what the settings say.

    \b
    Examples:
      tidegate access show
      tidegate access show --config tidegate.toml --json
    """
    with Bus(load_installation(state).control_urls) as bus:
        applied = bus.get(ACCESS)
    found = applied.access if applied is not None else load(config).identity.access
    if as_json:
        typer.echo(msgspec.json.encode({"applied": applied, "access": found}))
        return
    typer.echo(f"# {_origin(applied, config)}\n{msgspec.yaml.encode(found).decode()}", nl=False)


def _read(file: str) -> Access | None:
    name = name_of(file)
    like = "an access file, like examples/identity/access.yaml"
    return access_files.read(text_of(file, access_files.LENGTH_MAX, access_files.too_long(name), like=like), name)


def _counted(found: Access | None) -> str:
    if found is None:
        return "it is empty, what the settings say counts"
    return f"{len(found.applications)} application(s) beside devices"


def _origin(applied: AppliedAccess | None, config: Path | None) -> str:
    if applied is None:
        return f"nothing was applied: this is what {config or 'the settings'} say" + ("s" if config else "")
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(applied.applied_at_s))
    return f"{applied.name}, applied {when}: {_counted(applied.access)}"
