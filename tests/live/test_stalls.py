"""A node that hangs does not live: it gives its slices up, ends, and comes back. A slow one is left alone."""

import json
import os
import signal
from contextlib import suppress

import pytest
from support.bus import ControlBus
from support.clients import publish_all
from support.processes import is_running
from support.rigs import NODES, SETTINGS, fleet, owners, settle, spread, table
from support.waiting import until

from tidegate.bus.documents import NODE_LEASES, PROGRESS
from tidegate.controller.sensors import Sensors
from tidegate.model.progress import Batch
from tidegate.pipeline.pulse import RECENT
from tidegate_bench.rig.installation import Rig

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]
SILENT = "has given no sign of life for"
# The floor, five times a batch that the machine was slow with, and the adoption by the other.
MOVED_S_MAX = 130.0
QUICK_S = 1.2
QUICK_WAIT_S = 8.0  # while the fleet still sends


def recent(rig: Rig) -> list[Batch]:
    said = rig.progress("left")
    assert said is not None
    found = list(said.batches)
    return found[-RECENT:] if len(found) >= RECENT else [Batch(at_s=0.0, rows=0, seconds=QUICK_S, at_limit=False)]


@pytest.mark.parametrize("kind", ["jvms", "planners", "workers"])
def test_slices_leave_a_node_of_which_a_process_hangs(rig: Rig, kind: str) -> None:
    node = rig.nodes["left"]
    rig.wait("left to work", lambda: rig.has_progress("left"), 60)
    spread(rig)
    running = fleet(rig, f"stalled-{kind}", seconds=11)
    # A node's patience follows its recent batches, and its first one takes long. Where the machine is slow throughout,
    # the test takes longer, and shows the same.
    with suppress(AssertionError):
        until(lambda: all(batch.seconds < QUICK_S for batch in recent(rig)), QUICK_WAIT_S)
    members = node.family()
    for process in getattr(node, kind)():
        process.send_signal(signal.SIGSTOP)
    until(lambda: set(owners(rig)) == {"right"}, MOVED_S_MAX)
    until(lambda: node.status is not None, 20)
    assert node.status == os.EX_TEMPFAIL
    until(lambda: not any(is_running(member.pid) for member in members), 5)  # not even what was paused
    assert SILENT in node.last_words()
    with ControlBus(rig.installation) as bus:
        said = bus.get(PROGRESS, "left")
        assert said is not None
        assert said.problem == node.last_words()
        assert bus.get(NODE_LEASES, "left") is None
    sensors = Sensors(rig.installation, name="test")
    assert f"Node left: {said.problem}" in sensors.observe(()).alarms
    sensors.close()
    told: list[str] = []

    def is_back() -> bool:
        node.keep_running(told.append)
        found = rig.progress("left")
        return "left" in rig.assignments.alive() and found is not None and found.ready and found.pid == node.pid

    until(is_back, 90, every_s=0.1)
    assert told == [f"left ended with status {os.EX_TEMPFAIL}; it is started again."]
    settle(rig, running)
    assert SILENT not in (rig.state / "right.log").read_text(), "no alarm without a fault"


def test_a_node_that_is_only_slow_is_left_alone(rig: Rig) -> None:
    """A batch three times as long as the floor, after one that was short."""
    rig.start_node("slow", **{**SETTINGS, "stall_s_min": "2", "cost_us_per_record": "4000"})
    try:
        rig.wait("slow to work", lambda: rig.has_progress("slow"), 60)
        for slice_ in range(rig.installation.slices):
            rig.assignments.move(slice_, "slow")
        rig.wait("slow to have all", lambda: set(owners(rig)) == {"slow"}, 60)

        def send(first: int, count: int) -> None:
            payloads = (json.dumps({"boot": 1, "seq": first + seq, "value": 1}).encode() for seq in range(count))
            publish_all(rig.installation, "unhurried", (("telemetry/unhurried", payload) for payload in payloads))

        def stored() -> int:
            return table(rig, "readings")["device"].to_pylist().count("unhurried")

        send(0, 1)
        rig.wait("the first reading", lambda: stored() == 1, 60)
        send(1, 1_500)
        rig.wait("all readings", lambda: stored() == 1_501, 90)
        assert SILENT not in (rig.state / "slow.log").read_text()
    finally:
        rig.nodes.pop("slow").stop()
        rig.wait("others to take over", lambda: set(owners(rig)) <= set(NODES), 30)
