"""The demo from its first line to its last: start, calm, both acts, verdict, and then it is yours."""

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from rich.console import Console

from tidegate.demo import picture
from tidegate.demo.acts import Cue, Stage
from tidegate.demo.keys import stay
from tidegate.demo.script import Script, environment
from tidegate.demo.starting import Starting
from tidegate.demo.story import Story
from tidegate.demo.verdict import Act, Figures, by_second, checks, figures
from tidegate.demo.watching import Window
from tidegate.local.chain import Chain
from tidegate.local.waiting import wait_until
from tidegate.machine.interrupting import interruptible
from tidegate.model.errors import TidegateError
from tidegate.report.checks import Check, Report
from tidegate.settings.tree import Settings

VIEW_S_MAX = 30.0


class Performance:
    """One run of the demo. ``perform`` returns its report; whatever happens, everything it started has ended then."""

    def __init__(
        self,
        console: Console,
        script: Script,
        *,
        headless: bool,
        controllers: int,
        kill_leader: bool,
        picture_file: Path | None,
        policy: str = "gotin",
        afterwards: Callable[[Path], None] = lambda _: None,
    ) -> None:
        """``afterwards`` is called with the installation's directory while everything still runs."""
        self._policy, self._afterwards = policy, afterwards
        self._story = Story(console)
        self._script = script
        self._headless = headless
        self._controllers = controllers
        self._kill_leader = kill_leader
        self._picture_file = picture_file
        self._began_s = time.monotonic()

    def perform(self) -> Report:
        story = self._story
        story.say("Tidegate demo: loopback only; Ctrl-C stops everything and leaves nothing behind.")
        with tempfile.TemporaryDirectory(prefix="tidegate-demo-", ignore_cleanup_errors=True) as directory:
            chain = self._chain(Path(directory))
            with _stopped_in_peace(chain, story):
                window = self._start(chain)
                stage = Stage(chain, window, story, self._script)
                report = self._acts(stage)
                self._afterwards(Path(directory))
                if not self._headless:
                    stay(stage)
                return report

    def _chain(self, directory: Path) -> Chain:
        return Chain(
            directory,
            Settings(),
            self._story.say,
            controllers=self._controllers,
            environment=environment(self._policy),
            logs=True,
        )

    def _start(self, chain: Chain) -> Window:
        story = self._story
        story.heading("Starting")
        with Starting(story, ["brokers", *chain.part_names], self._began_s) as starting:
            chain.start_brokers()
            starting.ready("brokers")
            chain.start_parts()
            for name in chain.ready():
                if name:
                    starting.ready(name)
                starting.tick()
        window = Window(chain.web_addresses, chain.installation.token)
        self._await_view(window)
        host, port = chain.web_addresses[0]
        story.heading(f"Dashboard: http://{host}:{port}/?token={chain.installation.token}")
        story.say(f"  from another machine: ssh -L {port}:{host}:{port} <this machine>, then the same address there")
        return window

    def _await_view(self, window: Window) -> None:
        def is_led() -> bool:
            view = window.view()
            if view is not None and view.now is not None and view.leader is not None:
                return True
            self._story.wait("starting", ["the first measurement"])
            return False

        if not wait_until(is_led, VIEW_S_MAX):
            raise TidegateError(f"No controller leads after {VIEW_S_MAX:.0f} s: run it again; its logs went with it.")
        self._story.say(f"  everything is ready after {self._passed_s():.1f} s")

    def _passed_s(self) -> float:
        return time.monotonic() - self._began_s

    # -- the acts

    def _acts(self, stage: Stage) -> Report:
        script = self._script
        first = stage.play("act-1", protected=False, calm_s=script.calm_s, cues=self._cues_without())
        stage.window.remember(first.flood_from_s - script.pause_s, first.ended_s)
        second = stage.play("act-2", protected=True, calm_s=script.pause_s, cues=self._cues_with(stage))
        stage.ages.follow()
        rows = stage.ages.rows()
        without, protected = figures(first, rows), figures(second, rows)
        found, more = self._verdict((first, second), rows, (without, protected))
        self._tell_checks(found)
        documents = [
            {**msgspec.to_builtins(one), "script": msgspec.to_builtins(script)} for one in (without, protected)
        ]
        seconds = [row for act in (first, second) for row in by_second(act, rows)]
        times = [msgspec.to_builtins(act) for act in (first, second)]
        return Report("demo", [*documents, *times, *more, *seconds], found, round(self._passed_s(), 1))

    def _verdict(
        self,
        acts: tuple[Act, Act],  # noqa: ARG002 - another demo judges by them
        rows: pa.Table,  # noqa: ARG002
        ends: tuple[Figures, Figures],
    ) -> tuple[list[Check], list[dict[str, Any]]]:
        """Say how it ended; the checks, and what else the report should have."""
        self._story.verdict(*ends)
        if self._picture_file is not None:
            picture.save(self._picture_file, *ends)
        return checks(*ends), []

    def _cues_without(self) -> list[Cue]:
        script, story = self._script, self._story
        flood_from, flood_to = script.flood(script.calm_s)
        return [
            (0.0, lambda: story.heading(f"Calm: {script.calm_devices} devices send every {script.interval_s:g} s")),
            (flood_from, lambda: story.heading(f"Act 1: {script.flood_devices} devices, protection off")),
            (flood_to, lambda: story.say("  The flood ends; what waits is worked off.", "bold")),
        ]

    def _cues_with(self, stage: Stage) -> list[Cue]:
        script, story = self._script, self._story
        flood_from, flood_to = script.flood(script.pause_s)
        cues: list[Cue] = [
            (0.0, lambda: story.heading("The queue is empty. Act 2: the same flood, the same seed, protection on")),
            (flood_to, lambda: story.say("  The flood ends; devices return to their default.", "bold")),
        ]
        if self._kill_leader:
            cues.insert(1, ((flood_from + flood_to) / 2, lambda: self._end_leader(stage)))
        return cues

    def _end_leader(self, stage: Stage) -> None:
        view = stage.window.view()
        leader = view.leader if view is not None else None
        if leader in stage.chain.parts:
            stage.chain.parts[leader].kill()
            self._story.say(f"  {leader}, which was leading, is killed.", "bold")

    def _tell_checks(self, found: list[Check]) -> None:
        for check in found:
            mark, style = ("holds", "green") if check.holds else ("does NOT hold", "bold red")
            self._story.say(f"  {check.name} {check.value} ({check.bar}) {mark}", style)


@contextmanager
def _stopped_in_peace(chain: Chain, story: Story) -> Iterator[None]:
    """SIGTERM is a Ctrl-C too; while things stop, neither interrupts the stopping."""
    try:
        with interruptible():
            yield
    finally:
        story.say("Stopping everything.")
        chain.stop()
