"""One act: a fleet floods the installation, and what happens is told and noted until the queue is empty again."""

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from tidegate.demo.fleet_process import FleetProcess
from tidegate.demo.script import Script
from tidegate.demo.story import EVERY_S, Story
from tidegate.demo.verdict import Act, NodeSpan, ledger_of
from tidegate.demo.watching import Window
from tidegate.local.chain import Chain
from tidegate.local.waiting import wait_until
from tidegate.model.actions import Advise, Route
from tidegate.model.decisions import Mode
from tidegate.model.errors import TidegateError
from tidegate.model.observations import GatewayState, NodeState
from tidegate.model.view import Sample, View, is_ageing, state_of

LOOK_S = 0.25
DRAIN_S_MAX = 90.0
SETTLE_S_MAX = 10.0
EMPTY = 20
DECISIONS_SHOWN = 6
HELD_TOO_LONG = "held too long"  # a gateway's words for why it closed a connection

Cue = tuple[float, Callable[[], None]]


class Stage:
    """Everything an act needs."""

    def __init__(self, chain: Chain, window: Window, story: Story, script: Script) -> None:
        from tidegate.pipeline.ages import Ages  # noqa: PLC0415 - Arrow is slow to import

        self.chain = chain
        self.window = window
        self.story = story
        self.script = script
        # From the beginning, because the table forgets when its rows were committed.
        self.ages = Ages(Path(chain.installation.tables) / "readings")

    def play(self, name: str, *, protected: bool, calm_s: float, cues: Sequence[Cue]) -> Act:
        """``cues`` are things to say or do at a second of the act, in order."""
        self.window.set_mode(Mode(send_rate="acting" if protected else "off"))
        acks = self.chain.state / "acks" / name
        fleet = FleetProcess(self.chain.state, acks, self.script.pattern(calm_s), self.script)
        try:
            noted = self._follow(fleet, list(cues), self.script.seconds(calm_s) + DRAIN_S_MAX)
        finally:
            fleet.stop()
        self.story.say("  Comparing what devices saw acknowledged with the table.")
        flood_from, flood_to = self.script.flood(calm_s)
        ledger = self._ledger(acks)  # first: the act has ended when the last of it is in the table
        return Act(
            name=name,
            protected=protected,
            began_s=fleet.began_s,
            flood_from_s=fleet.began_s + flood_from,
            flood_to_s=fleet.began_s + flood_to,
            ended_s=time.time(),
            advised_s=noted.advised_s,
            interval_s_max=noted.interval_s_max,
            interval_s_end=noted.interval_s_end,
            fleet=fleet.summary(),
            nodes=tuple(noted.nodes),
            held_clients_max=noted.held_clients_max,
            held_too_long=noted.held_too_long,
            **ledger,
        )

    def _ledger(self, acks: Path) -> dict[str, int]:
        """What was acknowledged a moment ago may still be on its way: it is lost only if it does not arrive."""
        found: dict[str, int] = {}

        def nothing_is_lost() -> bool:
            self.ages.follow()
            found.update(ledger_of(Path(self.chain.installation.tables), acks))
            return found["lost"] == 0

        wait_until(nothing_is_lost, SETTLE_S_MAX, LOOK_S)
        return found

    def _follow(self, fleet: FleetProcess, cues: list[Cue], seconds_max: float) -> "_Noted":
        """Look and tell until the fleet has ended and everything it sent is in the tables."""
        noted = _Noted(fleet.began_s)
        while (second := time.time() - fleet.began_s) < seconds_max:
            while cues and cues[0][0] <= second:
                cues.pop(0)[1]()
            self.chain.watch()
            self.ages.follow()
            noted.see_processes(name for name in self.chain.parts if name.startswith("node-"))
            view = self.window.view()
            if view is not None and view.now is not None:
                self._tell_decisions(noted, view)
                if noted.is_due():
                    self._tell(noted, view, second)
                if not fleet.is_running and view.now.waiting <= EMPTY:
                    return noted
            elif noted.is_due():
                self.story.say(f"  {second:4.0f} s  no controller answers")
            time.sleep(LOOK_S)
        raise TidegateError(f"The queue did not empty within {seconds_max:.0f} s: see the logs in {self.chain.state}.")

    def _tell(self, noted: "_Noted", view: View, second: float) -> None:
        state = state_of(view.samples, view.mode)
        samples = tuple(sample for sample in view.samples if sample.at_s >= noted.began_s) or view.samples[-1:]
        self.story.measured(second, samples, state.severity)
        if self.script.deaf:
            gateways = view.chain.gateways
            self.story.held(held_clients(gateways), sum(gateway.held for gateway in gateways))
        mood = (state.severity, is_ageing(view.samples), view.samples[-1].interval_s > 0)
        if mood != noted.mood:
            noted.mood = mood
            self.story.state(state)

    def _tell_decisions(self, noted: "_Noted", view: View) -> None:
        noted.see(view.samples)
        noted.see_nodes(view.chain.nodes)
        noted.see_gateways(view.chain.gateways)
        for decision in view.decisions:
            if decision.at_s <= max(noted.decided_s, noted.began_s) or isinstance(decision.action, Route):
                continue
            noted.decided_s = decision.at_s
            if not isinstance(decision.action, Advise):
                self.story.decision(decision, whole=False)
                continue
            holds = decision.action.advice.interval_s > 0
            if holds:
                noted.advised_s = noted.advised_s or decision.at_s
            noted.decisions += 1
            if noted.decisions <= DECISIONS_SHOWN or not holds:
                self.story.decision(decision, whole=noted.decisions == 1)


def held_clients(states: Iterable[GatewayState]) -> int:
    return sum(sum(state.held_clients.values()) for state in states)


class _Noted:
    def __init__(self, began_s: float) -> None:
        self.began_s = began_s
        self.decided_s = 0.0
        self.advised_s: float | None = None
        self.decisions = 0
        self.interval_s_max = 0.0
        self.interval_s_end = 0.0
        self.mood: tuple[str, bool, bool] | None = None
        self.nodes: list[NodeSpan] = []
        self.held_clients_max = 0
        self._told_s = 0.0
        self._closed: list[int] = []  # first and last count of clients that were held too long

    def is_due(self) -> bool:
        """Whether it is time for the next line; asking says that it will be printed."""
        if time.monotonic() - self._told_s < EVERY_S:
            return False
        self._told_s = time.monotonic()
        return True

    def see_processes(self, names: Iterable[str]) -> None:
        """Note when a node's process is there, and when it has gone."""
        running, now_s = set(names), time.time()
        for place, span in enumerate(self.nodes):
            if span.ended_s is None and span.name not in running:
                self.nodes[place] = msgspec.structs.replace(span, ended_s=now_s)
        known = {span.name for span in self.nodes if span.ended_s is None}
        self.nodes += [NodeSpan(name=name, started_s=now_s) for name in sorted(running - known)]

    def see_gateways(self, states: Sequence[GatewayState]) -> None:
        self.held_clients_max = max(self.held_clients_max, held_clients(states))
        closed = sum(state.refused.get(HELD_TOO_LONG, 0) for state in states)
        self._closed = [*self._closed[:1], closed]

    @property
    def held_too_long(self) -> int:
        return max(0, self._closed[-1] - self._closed[0]) if self._closed else 0

    def see_nodes(self, states: Iterable[NodeState]) -> None:
        """A node works when it has slices, and has committed since it got them."""
        by_name = {state.name: state for state in states}
        for place, span in enumerate(self.nodes):
            state = by_name.get(span.name)
            if state is None or span.working_s is not None or not state.slices:
                continue
            held_s = span.held_s or time.time()
            working_s = state.committed_at_s if state.committed_at_s > held_s else None
            self.nodes[place] = msgspec.structs.replace(span, held_s=held_s, working_s=working_s)

    def see(self, samples: tuple[Sample, ...]) -> None:
        mine = [sample.interval_s for sample in samples if sample.at_s >= self.began_s]
        self.interval_s_max = max([self.interval_s_max, *mine])
        self.interval_s_end = mine[-1] if mine else 0.0
