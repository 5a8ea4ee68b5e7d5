"""Serves a moving installation until its standard input closes; prints its address first. Run by the browser tests.

    python tests/browser/serve_views.py TOKEN SCENARIO START_S

SCENARIO is calm, flood, protected, shadow, classes, deaf and deaf-3 (one and three gateways that hold), pipeline,
pipeline-empty and pipeline-broken (what a pipeline says), or devices and devices-new (who is refused, and a new
installation); START_S says how far into the run the page begins; with ``still`` as a fourth word the measurements have
stopped ten seconds ago.
"""

import asyncio
import sys
import time
from collections.abc import Callable, Mapping

import device_views
import pipeline_views
import views

from tidegate.model.decisions import Mode
from tidegate.model.view import Sample, View
from tidegate.web.server import serve

STILL_S = 10.0
MODES = {"flood": "off", "shadow": "shadow"}
HOLDING = {"deaf": 1, "deaf-3": 3}


class Moving:
    """A view whose time passes with the clock. Its mode is what the page sets."""

    def __init__(self, scenario: str, start_s: float, *, still: bool) -> None:
        self.mode = Mode(send_rate=MODES.get(scenario, "acting"))
        self._pipeline = scenario if scenario.startswith("pipeline") else None
        self._devices = scenario if scenario.startswith("devices") else None
        calm = "calm" if self._devices else scenario
        self._run = views.run(600.0, "protected" if self._pipeline else calm).shifted(time.time() - start_s)
        self._still_s = time.time() - STILL_S if still else None
        self._broken = scenario in ("flood", "pipeline-broken")
        self._holding = HOLDING.get(scenario, 0)

    def view(self) -> View:
        shown = self._run.until(self._still_s or time.time())
        view = views.view_at(shown, self.mode, broken=self._broken, holding_gateways=self._holding)
        if self._devices:
            return device_views.with_devices(view, self._devices)
        return pipeline_views.with_pipeline(view, self._pipeline) if self._pipeline else view

    async def set_mode(self, changes: Mapping[str, object]) -> Mode:
        self.mode = self.mode.with_changes(changes)
        return self.mode


async def main(token: str, scenario: str, start_s: float, *, still: bool) -> None:
    stop = asyncio.Event()
    moving = Moving(scenario, start_s, still=still)
    asyncio.get_running_loop().add_reader(sys.stdin, stop.set)
    past = _past if scenario == "protected" else None
    await serve(
        moving.view,
        moving.set_mode,
        host="127.0.0.1",
        port=0,
        token=token,
        stop=stop,
        ready=_say,
        first_reading=lambda: device_views.FIRST,
        look_up=device_views.look_up,
        **_optional(past),
    )


def _past() -> tuple[Sample, ...]:
    return views.run(200.0, "flood").samples


def _optional(past: Callable[[], tuple[Sample, ...]] | None) -> dict[str, Callable[[], tuple[Sample, ...]]]:
    return {"past": past} if past else {}


def _say(address: tuple[str, int]) -> None:
    print(f"http://{address[0]}:{address[1]}", flush=True)  # noqa: T201


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], float(sys.argv[3]), still=sys.argv[4:] == ["still"]))
