"""``tidegate bench calm``: with shipped settings nobody is held who need not be, and a flood is still seen at once.

One and two real processing nodes without artificial cost; 500 devices that send twice a second, and then 30 % of what
the nodes can really take; five minutes each, with and without a process beside them that keeps a processor busy.
Whatever is held is held for nothing. Then the demo's flood: how long until somebody is asked to send less often.
"""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tidegate.bus.audit import AuditLog
from tidegate.bus.client import Bus
from tidegate.bus.documents import MODE
from tidegate.demo.fleet_process import FleetProcess
from tidegate.demo.script import Script
from tidegate.demo.watching import Window
from tidegate.local.chain import Chain
from tidegate.model.actions import Advise
from tidegate.model.decisions import Mode
from tidegate.model.view import View
from tidegate.pipeline.ages import Ages
from tidegate.report.checks import Check, Report
from tidegate.report.progress import Progress
from tidegate_bench.chain.site import Configuration, Site, started_chain, started_load
from tidegate_bench.demos import played
from tidegate_bench.rig.children import Child
from tidegate_bench.rig.parts import Parts

DEVICES = 500
SECONDS = 300.0
SHARE = 0.3
SEEN_S_MAX = 3.0
DECISIONS_MAX = 100_000
# More than one node takes, and not so much that the rest takes minutes to work off.
PROBE_PER_S, PROBE_WARM_S, PROBE_S = 12_000.0, 5.0, 8.0


def run(progress: Progress, out: Path | None) -> Report:
    return measured(progress, out, SECONDS)


def measured(progress: Progress, out: Path | None, seconds: float) -> Report:
    began_s = time.monotonic()
    parts = Parts(None if out is None else out / "parts")
    rows = []
    for nodes in (1, 2):
        rows += parts.done(f"nodes-{nodes}", partial(_calm, nodes, seconds, progress))
    rows += parts.done("flood", lambda: [_flood(progress)])
    return Report("bench calm", rows, checks(rows), round(time.monotonic() - began_s, 1))


def checks(rows: list[dict[str, Any]]) -> list[Check]:
    calm = [row for row in rows if row["part"] == "calm"]
    flood = next(row for row in rows if row["part"] == "flood")
    return [
        Check.equal("held_calm", max(row["held_devices"] for row in calm), 0),
        Check.equal("withheld", sum(row["withheld"] for row in calm), 0),
        Check.at_most("seen_s", flood["seen_s"], SEEN_S_MAX),
    ]


# -- calm


def _calm(nodes: int, seconds: float, progress: Progress) -> list[dict[str, Any]]:
    rows = []
    configuration = Configuration(brokers=1, durability="process-kill")
    with started_chain(configuration, nodes, None, progress) as chain:
        window = Window(chain.web_addresses, chain.installation.token)
        with started_load(chain.state, chain.installation.gateway_mqtt) as load:
            progress.step(f"{nodes} node(s): what they can take")
            capacity_per_s = _capacity(chain, load)
            rate_per_s = SHARE * capacity_per_s
            with Bus(chain.installation.control_urls) as bus:
                bus.put(MODE, Mode())
            for spins in (False, True):
                for name in ("devices", "share"):
                    progress.step(f"{nodes} node(s), {name}{', a busy process beside them' if spins else ''}")
                    with _spinning(wanted=spins):
                        finish = _fleet(chain, seconds) if name == "devices" else _share(load, rate_per_s, seconds)
                        found = _watched(chain, window, finish, seconds, progress)
                    row = {"part": "calm", "nodes": nodes, "load": name, "spins": spins}
                    rows.append({**row, "capacity_per_s": round(capacity_per_s), **found})
    return rows


def _capacity(chain: Chain, load: Child) -> float:
    """Rows that the tables take a second while more of them arrives."""
    ages = Ages(Path(chain.installation.tables) / "readings")
    said = Site(chain, load).hold(PROBE_PER_S, PROBE_WARM_S, PROBE_S)
    ages.follow()
    committed_s = np.sort(ages.rows()["committed_s"].to_numpy())
    first_s = said["began_s"] + PROBE_WARM_S
    last_s = said["began_s"] + PROBE_WARM_S + PROBE_S
    return float(((committed_s >= first_s) & (committed_s < last_s)).sum()) / PROBE_S


Finish = Callable[[], int]  # ends a load, and says how many messages were withheld from it


def _fleet(chain: Chain, seconds: float) -> Finish:
    pattern = f"0:{DEVICES},{seconds:g}:{DEVICES}"
    fleet = FleetProcess(chain.state, chain.state / "acks", pattern, Script())

    def finish() -> int:
        summary = fleet.last_answer(60.0)
        fleet.stop()
        return int(summary["samples"]) - int(summary["acked"])

    return finish


def _share(load: Child, rate_per_s: float, seconds: float) -> Finish:
    load.tell(json.dumps({"rate": rate_per_s, "seconds": seconds}))

    def finish() -> int:
        said = load.answer()
        return int(said["sent"]) - int(said["acked"])

    return finish


def _watched(chain: Chain, window: Window, finish: Finish, seconds: float, progress: Progress) -> dict[str, Any]:
    """What was held while a load lasted: by what the controller shows each second, and by what it wrote down."""
    before, decided_before = _held_total(window.view()), _decisions_to_hold(chain)
    began_s, held, ages_s = time.monotonic(), 0, []
    while time.monotonic() - began_s < seconds:
        chain.watch()
        view = window.view()
        if view is not None and view.now is not None:
            holds = view.now.interval_s > 0 or any(view.now.classes.values())
            held = max(held, view.now.devices if holds else 0)
            ages_s.append(view.now.age_s)
        progress.update(f"{seconds - (time.monotonic() - began_s):.0f} s to go, {held} devices held")
        time.sleep(1.0)
    unsent = finish()
    decided = _decisions_to_hold(chain) - decided_before
    return {
        "held_devices": max(held, DEVICES if decided else 0),
        "decisions_to_hold": decided,
        "withheld": unsent + _held_total(window.view()) - before,
        "age_s_p50": round(float(np.median(ages_s)), 3) if ages_s else None,
        "age_s_max": round(max(ages_s, default=0.0), 3),
    }


def _decisions_to_hold(chain: Chain) -> int:
    """Ever. Whoever is held and let go between two looks is held all the same."""
    with Bus(chain.installation.control_urls) as bus:
        decisions = AuditLog(bus).last(DECISIONS_MAX)
    said = [one.action.advice for one in decisions if isinstance(one.action, Advise)]
    return sum(advice.interval_s > 0 or any(advice.classes.values()) for advice in said)


def _held_total(view: View | None) -> int:
    return 0 if view is None else sum(gateway.held_total for gateway in view.chain.gateways)


@contextmanager
def _spinning(*, wanted: bool) -> Iterator[None]:
    if not wanted:
        yield
        return
    beside = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        beside.kill()
        beside.wait()


# -- the flood


def _flood(progress: Progress) -> dict[str, Any]:
    progress.step("the demo's flood")
    return {"part": "flood", **played("gotin")}
