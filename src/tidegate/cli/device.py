"""``tidegate device``: who may connect, and with which password."""

import sys
import time
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from tidegate.bus import identity, register
from tidegate.bus.asking import device_report
from tidegate.bus.client import Bus
from tidegate.bus.installation import load_installation
from tidegate.bus.issued import Issued, issued
from tidegate.cli.device_handing import check_out, hand_out
from tidegate.cli.device_names import Count, From, Names, Prefix, named
from tidegate.cli.device_register import changed, opened, revoke_on_bus
from tidegate.cli.device_rotating import rotate_devices, rotate_key
from tidegate.cli.options import STATE, AsJson, State
from tidegate.gateway.identity.hashing import hashed
from tidegate.model.credentials import Keys
from tidegate.model.device_words import counted, described, described_fully, lines, state_of
from tidegate.model.devices import check_device
from tidegate.model.errors import TidegateError, UserError
from tidegate.model.registration import Entry

Name = Annotated[str, typer.Argument(metavar="NAME", help="A device or an application.")]
Out = Annotated[Path | None, typer.Option(metavar="FILE", help="Write names and passwords there (CSV, mode 0600).")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite what --out names.")]
GRACE_S = 24 * 3600.0

app = typer.Typer(no_args_is_help=True)


@app.callback()
def device() -> None:
    """Devices and applications: their passwords, and who is no longer let in.

    \b
    Examples:
      tidegate device add pump-1
      tidegate device add --count 1000 --prefix pump --out pumps.csv
      tidegate device revoke pump-000007
      tidegate device rotate --from pumps.txt --grace 3600 --out new.csv
      tidegate device show pump-1
    """


@app.command()
def add(
    names: Names = None,
    *,
    from_: From = None,
    count: Count = None,
    prefix: Prefix = None,
    note: Annotated[str | None, typer.Option(help="A word about them, shown by 'list' and 'show'.")] = None,
    out: Out = None,
    force: Force = False,
    state: State = STATE,
    as_json: AsJson = False,
) -> None:
    """Give devices their passwords. Who was added before keeps the same one; who was revoked gets a new one.

    \b
    Examples:
      tidegate device add pump-1 --note "line 4"
      tidegate device add --from names.txt --out passwords.csv
      tidegate device add --count 100000 --prefix meter --out meters.csv
    """
    wanted = named(names, from_, count, prefix)
    check_out(wanted, out, force, as_json)
    now_s = time.time()
    with opened(state) as (bus, keys, installation):
        found = changed(bus, wanted, lambda entry: entry.added(now_s, note), "adding devices")
        identity.copy_revoked(bus, state)
    hand_out(_issued(keys, found), out, as_json, installation, "added")


@app.command()
def credentials(name: Name, state: State = STATE, as_json: AsJson = False) -> None:
    """Print the user name and the password of one device.

    \b
    Examples:
      tidegate device credentials pump-1
      tidegate device credentials pump-1 --json
    """
    check_device(name)
    with opened(state) as (bus, keys, _):
        entry = register.entries(bus, [name])[name]
    if entry.is_revoked:
        raise UserError(f"{name} is revoked and has no password: 'tidegate device add {name}' gives it a new one.")
    found = issued(keys.current, name, entry.generation)
    if as_json:
        typer.echo(msgspec.json.encode(found))
    else:
        typer.echo(f"user: {found.user}\npassword: {found.password}")
    if entry.registered is None:
        typer.echo(f"{name} is not in the register; its password counts all the same.", err=True)


@app.command()
def revoke(names: Names = None, from_: From = None, state: State = STATE, as_json: AsJson = False) -> None:
    """Let somebody in no longer, by whichever method; who is connected is disconnected at once.

    \b
    Examples:
      tidegate device revoke pump-1
      tidegate device revoke --from stolen.txt
    """
    wanted = named(names, from_)
    with Bus(load_installation(state).control_urls) as bus:
        trouble = revoke_on_bus(bus, state, wanted)
    if as_json:
        typer.echo(msgspec.json.encode({"revoked": wanted}))
    else:
        typer.echo(f"{counted(wanted)} revoked: gateways refuse and disconnect from now on.")
    if trouble is not None:
        raise TidegateError(f"The control bus has that, and its copy in the state directory has not: {trouble}")


@app.command()
def rotate(
    names: Names = None,
    *,
    from_: From = None,
    grace: Annotated[
        float, typer.Option(min=0, max=366 * 86_400, help="Seconds for which the old one counts.")
    ] = GRACE_S,
    installation_key: Annotated[
        bool, typer.Option("--installation-key", help="Rotate the key that all passwords are derived from.")
    ] = False,
    finish: Annotated[bool, typer.Option("--finish", help="End the previous installation key.")] = False,
    out: Out = None,
    force: Force = False,
    state: State = STATE,
    as_json: AsJson = False,
) -> None:
    """Give devices a new password; the old one counts for a while. Or rotate the installation's own key.

    \b
    Examples:
      tidegate device rotate pump-1 --grace 3600
      tidegate device rotate --from names.txt --out new.csv
      tidegate device rotate --installation-key
      tidegate device rotate --installation-key --finish
    """
    if installation_key:
        if names or from_:
            raise UserError("--installation-key is about all devices: leave the names out.")
        with opened(state) as (bus, _, _):
            rotate_key(bus, state, finish=finish)
        return
    if finish:
        raise UserError("--finish belongs to --installation-key: the old password of a device ends by itself.")
    wanted = named(names, from_)
    check_out(wanted, out, force, as_json)
    with opened(state) as (bus, keys, installation):
        rotate_devices(bus, keys, installation, wanted, state=state, grace_s=grace, out=out, as_json=as_json)


@app.command(name="list")
def list_(
    prefix: Annotated[str, typer.Option(help="Only names that begin like this.")] = "",
    state: State = STATE,
    as_json: AsJson = False,
) -> None:
    """List what is registered or revoked.

    \b
    Examples:
      tidegate device list
      tidegate device list --prefix pump- --json
    """
    with Bus(load_installation(state).control_urls) as bus:
        found = sorted(one for one in register.listed(bus) if one.name.startswith(prefix))
    now_s = time.time()
    if as_json:
        typer.echo(msgspec.json.encode({"devices": [described(name, entry, now_s) for name, entry in found]}))
        return
    if not found:
        typer.echo("No device is registered: 'tidegate device add NAME' registers one.", err=True)
    width = min(40, max((len(one.name) for one in found), default=0))
    for name, entry in found:
        note = "" if entry.registered is None or entry.registered.note is None else f"  ({entry.registered.note})"
        typer.echo(f"{name:<{width}}  generation {entry.generation}  {state_of(entry, now_s)}{note}")


@app.command()
def show(name: Name, state: State = STATE, as_json: AsJson = False) -> None:
    """Say what is known of one device: its password's state, where it is connected, and which limit it meets.

    \b
    Examples:
      tidegate device show pump-1
      tidegate device show pump-1 --json
    """
    check_device(name)
    with Bus(load_installation(state).control_urls) as bus:
        report = device_report(bus, name)
    now_s = time.time()
    if as_json:
        typer.echo(msgspec.json.encode(described_fully(report, now_s)))
    else:
        typer.echo("\n".join(lines(report, now_s)))


@app.command(name="hash")
def hash_(name: Name) -> None:
    """Make a line for the password file of the method 'file'. The password is asked for, or read from standard input.

    \b
    Examples:
      tidegate device hash analytics >> passwords
      printf %s "$PASSWORD" | tidegate device hash analytics >> passwords
    """
    check_device(name)
    if ":" in name:
        raise UserError(
            f"{name} cannot stand in a password file, whose lines are name:hash: choose one without a colon."
        )
    typer.echo(f"{name}:{hashed(_password()).text()}")


def _password() -> bytes:
    if sys.stdin.isatty():
        return str(typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)).encode()
    found = sys.stdin.buffer.readline().rstrip(b"\r\n")
    if not found:
        raise UserError("Standard input has no password: pipe one line into this command, or run it in a terminal.")
    return found


def _issued(keys: Keys, found: dict[str, Entry]) -> list[Issued]:
    return [issued(keys.current, name, entry.generation) for name, entry in found.items()]
