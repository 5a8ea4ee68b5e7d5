"""One ticking line per part while the system starts; plain lines where there is no terminal to tick on."""

import time
from collections.abc import Sequence

from rich.live import Live
from rich.table import Table

from tidegate.demo.story import Story

TICKS_PER_S = 5


class Starting:
    """Use as a context manager around the start; tell it what is ready."""

    def __init__(self, story: Story, parts: Sequence[str], began_s: float) -> None:
        self._story = story
        self._began_s = began_s
        self._ready_s: dict[str, float | None] = dict.fromkeys(parts)
        self._live: Live | None = None
        if story.console.is_terminal:
            self._live = Live(console=story.console, get_renderable=self._shown, refresh_per_second=TICKS_PER_S)

    def __enter__(self) -> "Starting":
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def ready(self, part: str) -> None:
        passed_s = self._ready_s[part] = time.monotonic() - self._began_s
        if self._live is None:
            self._story.say(f"  {part} ready after {passed_s:.1f} s")

    def tick(self) -> None:
        """Called often: says what is waited for when nothing was said for a while."""
        if self._live is None:
            waiting = [part for part, ready_s in self._ready_s.items() if ready_s is None]
            self._story.wait("starting", waiting)

    def _shown(self) -> Table:
        shown = Table.grid(padding=(0, 2))
        for part, ready_s in self._ready_s.items():
            if ready_s is None:
                shown.add_row(f"  {part}", f"starting, {time.monotonic() - self._began_s:.1f} s")
            else:
                shown.add_row(f"  {part}", f"[green]ready[/green] after {ready_s:.1f} s")
        return shown
