"""A chain that grows to two nodes and shrinks to one again while readings flow: real processes, and an exact ledger."""

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from support.bus import LEASE_S, ControlBus
from support.processes import RATE_FLEET, family

from tidegate.bus.documents import NODE_LEASES, PROGRESS, SLICES, Holder
from tidegate.control.slicing.spreading import slices_to_move, stayers
from tidegate.controller.executors import Executors
from tidegate.controller.sensors import Sensors
from tidegate.devices.acknowledgements import read_directory
from tidegate.local.chain import Chain
from tidegate.model.actions import Action, MoveSlices, ScaleNodes
from tidegate.model.errors import TidegateError, UserError
from tidegate.model.installation import Installation
from tidegate.model.observations import Observation
from tidegate.model.progress import NodeProgress, RowsAtLimit
from tidegate.pipeline.tables.ledger import check, read_identities
from tidegate.settings.tree import Settings

pytestmark = [pytest.mark.live, pytest.mark.timeout(300)]
QUICK = {"TIDEGATE_NODE__TRIGGER_MS": "100", "TIDEGATE_NODE__LEASE_S": "2"}
FLEET = [*RATE_FLEET, "--json", "--devices", "40", "--rate", "300"]


class Site:
    """The chain, and the loop's place taken by the test: it sees with sensors and acts with executors."""

    def __init__(self, chain: Chain, said: list[str]) -> None:
        self.chain, self.said = chain, said
        self._bus = ControlBus(chain.installation)
        self._executors = Executors(self._bus)
        self._sensors = Sensors(chain.installation, name="test")
        self.acks = chain.state / "acks"
        seconds = ["--seconds", "120", "--state", str(chain.state), "--acks", str(self.acks)]
        self.fleet = subprocess.Popen([*FLEET, *seconds], stdout=subprocess.PIPE)

    def close(self) -> None:
        self.fleet.kill()
        self.fleet.communicate()
        self._sensors.close()
        self._bus.close()

    def act(self, action: Action) -> None:
        self._executors.carry_out(action)

    def look(self) -> Observation:
        self.chain.watch()
        return self._sensors.observe(())

    def until(self, holds: Callable[[Observation], bool], within_s: float = 90.0, *, spread_over: int = 0) -> None:
        """Look after the chain until it is as it should be, spreading slices over so many nodes meanwhile."""
        deadline_s = time.monotonic() + within_s
        while not holds(seen := self.look()):
            assert time.monotonic() < deadline_s, f"{seen.nodes} {seen.starting} {self.said}"
            held = {node.name: node.slices for node in seen.nodes if node.ready}
            if spread_over and (moves := slices_to_move(held, stayers(held, spread_over))):
                self.act(MoveSlices(takers={move.slice: move.taker for move in moves}))
            time.sleep(0.2)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """Brokers and nodes alone: a chain whose parts were not started is one node short, and that it starts itself."""
    said: list[str] = []
    with Chain(tmp_path, Settings(), said.append, nodes_max=2, environment=QUICK) as chain:
        chain.start_brokers()
        running = Site(chain, said)
        try:
            yield running
        finally:
            running.close()


def slices_of(seen: Observation) -> dict[str, int]:
    return {node.name: len(node.slices) for node in seen.nodes}


def test_a_second_node_comes_takes_half_and_goes_again(site: Site) -> None:
    chain = site.chain
    assert site.look().starting == 1
    site.until(lambda seen: slices_of(seen) == {"node-1": 8} and seen.starting == 0)

    site.act(ScaleNodes(nodes_wanted=2))
    site.until(lambda seen: "node-2" in chain.parts and seen.starting == 1, within_s=10)
    site.until(lambda seen: slices_of(seen) == {"node-1": 4, "node-2": 4}, spread_over=2)
    assert site.look().starting == 0
    site.until(lambda seen: all(node.rows > 0 for node in seen.nodes))

    # A change of mind: nobody has moved a slice, so the node has not been stopped.
    site.act(ScaleNodes(nodes_wanted=1))
    site.look()
    site.act(ScaleNodes(nodes_wanted=2))
    site.look()
    assert site.said[-2:] == [
        "node-2 is to stop when its slices have left because 1 processing node is wanted.",
        "node-2 stays because 2 processing nodes are wanted.",
    ]

    leaving = family(chain.parts["node-2"].pid)
    assert len(leaving) > 2, "a JVM and its workers"
    site.act(ScaleNodes(nodes_wanted=1))
    site.until(lambda _: "node-2" not in chain.parts, spread_over=1)
    assert [process for process in leaving if process.is_running() and process.status() != "zombie"] == []
    site.until(lambda seen: slices_of(seen) == {"node-1": 8}, within_s=5)
    assert site.said[-1] == "node-2 has stopped."

    site.fleet.terminate()
    summary = json.loads(site.fleet.communicate(timeout=30)[0])
    assert summary["acked"] == summary["sent"] > 1000
    site.until(lambda seen: seen.arrived > 1000 and seen.waiting == 0)
    verdict = check(read_directory(site.acks), read_identities(Path(chain.installation.tables)))
    assert (verdict.lost, verdict.duplicated, verdict.acknowledged) == (0, 0, summary["acked"])

    a_hanging_bus_stops_nobody(site)
    nothing_outlives_a_stop_in_the_middle_of_a_start(site)


def a_hanging_bus_stops_nobody(site: Site) -> None:
    bus = site.chain.brokers.pids()[-1]
    os.kill(bus, signal.SIGSTOP)
    try:
        began_s = time.monotonic()
        site.chain.watch()
        assert time.monotonic() - began_s < 3
    finally:
        os.kill(bus, signal.SIGCONT)
    assert set(site.chain.parts) == {"node-1"}


def nothing_outlives_a_stop_in_the_middle_of_a_start(site: Site) -> None:
    site.act(ScaleNodes(nodes_wanted=7))
    site.until(lambda _: "node-2" in site.chain.parts, within_s=10)
    assert "7 processing nodes are wanted, but only 2 may run here: raise --nodes-max." in site.said
    started = [member for name in site.chain.parts for member in family(site.chain.parts[name].pid)]
    site.chain.stop()
    _, alive = psutil.wait_procs(started, timeout=20)
    assert alive == []


def test_what_the_loop_is_told_of_nodes_that_start_and_of_slices_that_move(installation: Installation) -> None:
    """Nodes that exist on paper only: one works, one warms up, a third is wanted."""
    with contextlib.closing(Sensors(installation, name="test")) as sensors, ControlBus(installation) as bus:
        executors = Executors(bus)
        with pytest.raises(TidegateError, match=r"No slice can be moved: there is no slice 0"):
            executors.carry_out(MoveSlices(takers={0: "node-1"}))
        assert bus.get(SLICES) is None, "there was nothing to move"
        bus.put(NODE_LEASES, Holder("node-1", "1"), "node-1", lease_s=LEASE_S)
        assert not sensors.observe(()).nodes[0].ready, "it has said nothing yet"
        at_limit = RowsAtLimit(rows=900, seconds=1.5)
        bus.put(PROGRESS, NodeProgress(node="node-1", limit=at_limit), "node-1")
        bus.assignments.adopt_orphans()
        seen = sensors.observe(())
        assert (seen.starting, seen.nodes[0].ready) == (0, True)
        assert (seen.nodes[0].limit_rows, seen.nodes[0].limit_s, seen.nodes[0].slices) == (900, 1.5, (0, 1))

        executors.carry_out(ScaleNodes(nodes_wanted=3))
        bus.put(NODE_LEASES, Holder("node-2", "1"), "node-2", lease_s=LEASE_S)
        bus.put(PROGRESS, NodeProgress(node="node-2", ready=False), "node-2")
        seen = sensors.observe(())
        assert ([node.ready for node in seen.nodes], seen.starting) == ([True, False], 2)

        executors.carry_out(MoveSlices(takers={1: "node-2", 0: "nobody", 7: "node-2"}))
        assert [node.slices for node in sensors.observe(()).nodes] == [(0,), (1,)]

        bus.put(PROGRESS, NodeProgress(node="node-2", at_s=time.time()), "node-2")
        bus.delete(NODE_LEASES, "node-2")
        seen = sensors.observe(())
        assert [(node.name, node.is_working, node.slices) for node in seen.nodes] == [
            ("node-1", True, (0, 1)), ("node-2", False, ())
        ]  # fmt: skip
        assert seen.starting == 2
        executors.carry_out(ScaleNodes(nodes_wanted=1))
        assert [node.name for node in sensors.observe(()).nodes] == ["node-1"], "the other one was stopped"
        bus.put_raw("scale", b"{")
        assert [node.name for node in sensors.observe(()).nodes] == ["node-1"], "what was wanted last still is"
        executors.carry_out(ScaleNodes(nodes_wanted=3))
        assert sensors.observe(()).starting == 2
        bus.put(PROGRESS, NodeProgress(node="node-2", at_s=time.time(), left=True), "node-2")
        assert [node.name for node in sensors.observe(()).nodes] == ["node-1"], "it said that it was leaving"

        bus.put_raw("scale", b'{"nodes_wanted": 0}')
        seen = sensors.observe(())
        assert seen.starting == 2
        assert any("How many processing nodes are wanted is not known" in alarm for alarm in seen.alarms)


def test_more_nodes_than_may_run_are_refused_with_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="3 nodes are more than --nodes-max 2 allows"):
        Chain(tmp_path, Settings(), print, nodes=3, nodes_max=2)
