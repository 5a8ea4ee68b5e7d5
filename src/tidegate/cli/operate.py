"""Commands for a running installation: ``status`` looks, ``move`` acts."""

import json
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from tidegate.brokers.opening import open_brokers, open_log
from tidegate.bus.assignments import Assignments
from tidegate.bus.client import Bus
from tidegate.bus.documents import NODE_LEASES, PROGRESS
from tidegate.bus.installation import load_installation
from tidegate.cli.options import STATE, AsJson, State
from tidegate.cli.readable import readable
from tidegate.model.backlog import Backlog
from tidegate.model.errors import DamagedDocumentError, UserError
from tidegate.model.installation import Installation
from tidegate.model.positions import sequence_of
from tidegate.model.progress import NodeProgress

MOVE_S_MAX = 30.0


def status(state: State = STATE, as_json: AsJson = False) -> None:
    """Say how old the data is, what waits, and which node works on which slice.

    \b
    Examples:
      tidegate status
      tidegate status --json
    """
    installation = load_installation(state)
    if installation.log is None:
        _print_brokers(installation, as_json=as_json)
        return
    from tidegate.pipeline.tables.tables import Tables  # noqa: PLC0415 - slow to import

    tables = Tables(Path(installation.tables))
    committed = {s: sequence_of(tables.readings.position(s).offset) for s in range(installation.slices)}
    with Bus(installation.control_urls) as bus, closing(open_log(installation.log)) as log:
        assignments = Assignments(bus, installation.slices)
        backlog = log.backlog(committed)
        ownerships = _owners(assignments)
        nodes = {name: _said_by(bus, name) for name in bus.names(NODE_LEASES) if readable(bus, NODE_LEASES, name)}
    if as_json:
        typer.echo(json.dumps(_document(backlog, ownerships, nodes)))
        return
    console = Console()
    console.print(sentence(backlog, nodes))
    table = Table("slice", "node", "epoch", "committed", "waiting", "age of data", box=None)
    for one, ownership in zip(backlog.slices, ownerships, strict=True):
        age = f"{one.head_age_s:.1f} s" if one.waiting else "-"
        owner = f"{ownership.owner or 'none'}{f' → {ownership.taker}' if ownership.taker else ''}"
        table.add_row(str(one.slice), owner, str(ownership.epoch), f"{one.committed:,}", f"{one.waiting:,}", age)
    console.print(table)


def _owners(assignments: Assignments) -> Any:
    """Who has which slice; nobody, with a line on standard error, where the document is damaged."""
    try:
        return assignments.current().ownerships
    except DamagedDocumentError as error:
        typer.echo(f"ALARM: {error}", err=True)
        return assignments.without_owners().ownerships


def _said_by(bus: Bus, name: str) -> NodeProgress:
    """What a node says of itself; that it cannot be read, where that is so: the others are shown all the same."""
    try:
        return bus.get(PROGRESS, name) or NodeProgress(node=name, ready=False)
    except DamagedDocumentError as error:
        return NodeProgress(node=name, ready=False, problem=str(error))


def _print_brokers(installation: Installation, *, as_json: bool) -> None:
    """Of brokers without a log there is no backlog to tell, but their health and load."""
    with closing(open_brokers(installation)) as brokers:
        states = brokers.states()
    if as_json:
        typer.echo(msgspec.json.encode({"brokers": states}))
        return
    console = Console()
    console.print("The brokers keep no log, so what waits in them cannot be seen.")
    table = Table("broker", "address", "health", "connections", box=None)
    for one in states:
        table.add_row(
            one.name,
            one.address,
            "healthy" if one.healthy else str(one.problem),
            "unknown" if one.connections is None else f"{one.connections:,}",
        )
    console.print(table)


def sentence(backlog: Backlog, nodes: Mapping[str, NodeProgress]) -> str:
    """One sentence of state, then what is wrong."""
    freshness = f"Data is {backlog.head_age_s:.1f} s old" if backlog.waiting else "Data is up to date"
    lines = [f"{freshness}: {backlog.waiting:,} readings wait, {len(nodes)} processing node(s) run."]
    lines += [f"ALARM: {alarm}" for alarm in (*backlog.alarms, *backlog.contradictions, *backlog.warnings)]
    lines += [f"Node {name}: {node.problem}" for name, node in nodes.items() if node.problem]
    return "\n".join(lines)


def _document(backlog: Backlog, ownerships: Any, nodes: Mapping[str, NodeProgress]) -> dict[str, Any]:
    slices = [
        {
            "slice": one.slice,
            "node": ownership.owner,
            "taker": ownership.taker,
            "epoch": ownership.epoch,
            "committed": one.committed,
        }
        | {"waiting": one.waiting, "age_s": one.head_age_s}
        for one, ownership in zip(backlog.slices, ownerships, strict=True)
    ]
    return {
        "age_s": backlog.head_age_s,
        "waiting": backlog.waiting,
        "upstream_waiting": backlog.upstream_waiting,
        "alarms": [*backlog.alarms, *backlog.contradictions, *backlog.warnings],
        "slices": slices,
        "nodes": msgspec.to_builtins(nodes, str_keys=True),
    }


def move(
    slice_: Annotated[int, typer.Argument(metavar="SLICE", help="The slice's number.")],
    to: Annotated[str, typer.Option(help="The node that shall take it.")],
    state: State = STATE,
) -> None:
    """Move a slice to another running node; returns when that node has it.

    \b
    Example:
      tidegate move 3 --to node-2
    """
    installation = load_installation(state)
    with Bus(installation.control_urls) as bus:
        assignments = Assignments(bus, installation.slices)
        started = time.monotonic()
        refusal = assignments.move(slice_, to)
        if refusal is not None:
            raise UserError(f"Slice {slice_} stays where it is: {refusal}.")
        while assignments.current().ownerships[slice_].owner != to:
            if time.monotonic() - started > MOVE_S_MAX:
                raise UserError(
                    f"Slice {slice_} is still on its way to {to}: its node may be busy; see 'tidegate status'."
                )
            time.sleep(0.05)
    typer.echo(f"Slice {slice_} is on node {to} ({time.monotonic() - started:.1f} s).")
