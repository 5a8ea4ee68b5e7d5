"""``tidegate fleet``: thousands of simulated devices in one process, as many at a time as a pattern says."""

import asyncio
import contextlib
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import msgspec
import typer
import uvloop

from tidegate.bus.installation import load_installation
from tidegate.bus.issued import credentials_of, read_issued
from tidegate.cli.ledger import ACKS
from tidegate.cli.options import STATE, AsJson, State
from tidegate.devices import boots
from tidegate.devices.acknowledgements import SUFFIX, AckFile
from tidegate.devices.fleet import EXIT_UNACKNOWLEDGED, Fleet
from tidegate.devices.fleet_figures import FleetProgress, FleetSummary
from tidegate.devices.fleet_plan import FleetPlan
from tidegate.devices.mix import Mix, parse_classes
from tidegate.devices.pattern import Pattern
from tidegate.model.devices import check_device
from tidegate.model.errors import UserError

# Files that a process needs beside one connection per device.
_OTHER_FILES = 100
_STANDARD_INPUT = 0


def run(
    *,
    state: State = STATE,
    pattern: Annotated[str | None, typer.Option(help="seconds:devices, linear in between; it ends with it.")] = None,
    devices: Annotated[int | None, typer.Option(min=1, help="A constant number of devices ...")] = None,
    seconds: Annotated[float | None, typer.Option(min=0.0, help="... for so long.")] = None,
    interval: Annotated[float, typer.Option(min=0.01, max=3600.0, help="Each device samples every so many s.")] = 0.5,
    seed: Annotated[int, typer.Option(help="The same seed gives the same samples and phases.")] = 0,
    acks: Annotated[
        Path | None, typer.Option(help="Directory for the acknowledgement file.", show_default="<state>/acks")
    ] = None,
    deaf: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Share of devices that ask for no advice, like any MQTT client.")
    ] = 0.0,
    classes: Annotated[
        str | None, typer.Option(help="class:share with commas; each class gets its share of the devices.")
    ] = None,
    event_driven: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="Share of devices that send on change instead of by an interval.")
    ] = 0.0,
    credentials: Annotated[
        Path | None,
        typer.Option(help="Passwords, as 'tidegate device add --out' wrote them.", show_default="derived"),
    ] = None,
    prefix: Annotated[str, typer.Option(help="Devices and their acknowledgement file are named so.")] = "device",
    progress_json: Annotated[bool, typer.Option("--progress-json", help="A JSON line every second.")] = False,
    follow_stdin: Annotated[
        bool, typer.Option("--follow-stdin", help="Go on until told: lines 'pattern ...' or 'quit' on standard input.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run simulated devices that send what they sample, as often as they are advised.

    Exit status 0: every sample was acknowledged. 3: some were not.

    \b
    Examples:
      tidegate fleet --devices 200 --seconds 30
      tidegate fleet --pattern 0:100,10:100,14:800,44:800,48:100 --progress-json
      tidegate fleet --devices 500 --seconds 60 --deaf 0.1 --json
      tidegate fleet --devices 500 --seconds 60 --classes telemetry:0.8,alarm:0.1,command:0.1
    """
    check_device(prefix)
    chosen = _pattern(pattern, devices, seconds)
    mix = Mix(classes=() if classes is None else parse_classes(classes), event_driven=event_driven, seed=seed)
    _allow_files(chosen.devices_max)
    installation = load_installation(state)
    known = credentials_of(installation) if credentials is None else read_issued(credentials)
    directory = acks if acks is not None else state / ACKS
    with AckFile(directory / f"{prefix}{SUFFIX}") as file:
        boot = boots.next_boot(file.path.with_suffix(boots.SUFFIX), time.time())
        plan = FleetPlan(
            pattern=chosen,
            boot=boot,
            interval_s=interval,
            seed=seed,
            deaf=deaf,
            prefix=prefix,
            endless=follow_stdin,
            mix=mix,
        )
        fleet = Fleet(plan, installation, file, known, _print_progress if progress_json else None)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            summary = runner.run(_run(fleet, follow_stdin=follow_stdin))
    _print_summary(summary, fleet.last_failure, as_json=as_json)
    raise typer.Exit(0 if summary.is_complete else EXIT_UNACKNOWLEDGED)


def _pattern(text: str | None, devices: int | None, seconds: float | None) -> Pattern:
    if (text is None) == (devices is None and seconds is None):
        raise UserError("Say how many devices there are: give --pattern, or --devices and --seconds.")
    if text is not None:
        return Pattern.parse(text)
    if devices is None or seconds is None:
        raise UserError("--devices and --seconds belong together: give both, or --pattern.")
    return Pattern.constant(devices, seconds)


def _allow_files(devices: int) -> None:
    """Let the process have as many connections as it may; refuse what can never work."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and devices + _OTHER_FILES > hard:
        raise UserError(
            f"{devices:,} devices need as many connections, and this process may open {hard:,} files: "
            "raise the limit (ulimit -Hn), or run several fleets with a --prefix each."
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def _run(fleet: Fleet, *, follow_stdin: bool) -> FleetSummary:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, fleet.stop)
    if follow_stdin:
        # A thread, because not every standard input can be waited for by an event loop.
        obey = lambda line: loop.call_soon_threadsafe(_obey, fleet, line)  # noqa: E731
        threading.Thread(target=_read_lines, args=(obey,), daemon=True).start()
    return await fleet.run()


def _read_lines(obey: Callable[[str], object]) -> None:
    """Hand over each line of standard input; its end counts as 'quit', so a fleet never outlives what drives it."""
    rest = b""
    # The fleet may have ended meanwhile, and its event loop with it.
    with contextlib.suppress(OSError, RuntimeError):
        while data := os.read(_STANDARD_INPUT, 4_096):
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                obey(line.decode(errors="replace"))
        obey("quit")


def _obey(fleet: Fleet, line: str) -> None:
    command, _, rest = line.strip().partition(" ")
    try:
        match command:
            case "quit":
                fleet.stop()
            case "pattern":
                pattern = Pattern.parse(rest)
                _allow_files(pattern.devices_max)
                fleet.follow(pattern)
            case _:
                raise UserError(f"Nobody knows the command {line.strip()!r:.80}: write 'pattern ...' or 'quit'.")
    except UserError as error:
        print(f"fleet: {error}", file=sys.stderr, flush=True)  # noqa: T201


def _print_progress(progress: FleetProgress) -> None:
    print(msgspec.json.encode(progress).decode(), flush=True)  # noqa: T201


def _print_summary(summary: FleetSummary, last_failure: str, *, as_json: bool) -> None:
    missing = summary.samples - summary.readings
    if missing:
        reason = last_failure or "The gateway did not acknowledge in time"
        print(f"fleet: {missing:,} samples are not acknowledged. {reason}.", file=sys.stderr)  # noqa: T201
    if as_json:
        print(msgspec.json.encode(summary).decode(), flush=True)  # noqa: T201
        return
    kept = "kept its schedule" if summary.kept_schedule else "did NOT keep its schedule"
    print(  # noqa: T201
        f"{summary.readings:,} of {summary.samples:,} samples acknowledged, in {summary.acked:,} messages, "
        f"{summary.seconds:,.1f} s, {summary.reconnects} reconnects. "
        f"The fleet {kept}: at most {summary.late_s_max:.2g} s late."
    )
