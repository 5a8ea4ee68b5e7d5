"""After the verdict: the installation stays up, and single keys flood it, hurt it, and switch its protection."""

import contextlib
import os
import select
import sys
import termios
import time
import tty
from collections.abc import Iterator

from tidegate.demo.acts import Stage
from tidegate.demo.fleet_process import FleetProcess
from tidegate.demo.story import EVERY_S
from tidegate.model.decisions import Mode
from tidegate.model.view import state_of

LOOK_S = 0.25
HELP = "f flood   k kill the Spark node   o protection on/off   q quit"


def stay(stage: Stage) -> None:
    """Until ``q``, or Ctrl-C where there is no keyboard."""
    story, script = stage.story, stage.script
    story.heading(f"It stays up. Keys: {HELP}")
    story.say(
        "  Try: flood with protection off, then on; kill the node in a flood; 'tidegate explain', 'tidegate status'"
    )
    story.say(f"  with --state {stage.chain.state}; your own device: docs/devices.md.")
    calm = f"0:{script.calm_devices},86400:{script.calm_devices}"
    fleet = FleetProcess(stage.chain.state, stage.chain.state / "acks" / "after", calm, script, "--follow-stdin")
    try:
        with _single_keys() as has_keyboard:
            _serve(stage, fleet, has_keyboard=has_keyboard)
    finally:
        fleet.stop()


def _serve(stage: Stage, fleet: FleetProcess, *, has_keyboard: bool) -> None:
    told_s, protected = 0.0, True
    began_s = time.time()
    while True:
        stage.chain.watch()
        key = _key(has_keyboard=has_keyboard)
        if key == "q":
            return
        if key == "f":
            stage.story.say(f"  Flood: {stage.script.flood_devices} devices for {stage.script.flood_s:g} s.", "bold")
            fleet.follow(stage.script.pattern(0.0) + f",86400:{stage.script.calm_devices}")
        elif key == "k":
            stage.chain.parts["node-1"].kill()
            stage.story.say(
                "  The Spark node is killed; it is started again, and nothing acknowledged is lost.", "bold"
            )
        elif key == "o":
            protected = not protected
            stage.window.set_mode(Mode(send_rate="acting" if protected else "off"))
            stage.story.say(f"  Protection is {'on' if protected else 'off'}.", "bold")
        if time.monotonic() - told_s >= EVERY_S and (view := stage.window.view()) is not None and view.samples:
            told_s = time.monotonic()
            stage.story.measured(time.time() - began_s, view.samples, state_of(view.samples, view.mode).severity)


def _key(*, has_keyboard: bool) -> str:
    if not has_keyboard:
        time.sleep(LOOK_S)
        return ""
    ready, _, _ = select.select([sys.stdin], [], [], LOOK_S)
    # Not through the text layer: what it has read ahead, nobody would wait for.
    return os.read(sys.stdin.fileno(), 1).decode(errors="ignore").lower() if ready else ""


@contextlib.contextmanager
def _single_keys() -> Iterator[bool]:
    """Keys without a line end, as long as standard input is a terminal; the terminal is given back as it was."""
    if not sys.stdin.isatty():
        yield False
        return
    before = termios.tcgetattr(sys.stdin)
    try:
        tty.setcbreak(sys.stdin)
        yield True
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
