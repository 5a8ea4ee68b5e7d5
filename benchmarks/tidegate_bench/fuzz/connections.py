"""A whole connection as it is fuzzed: bytes of both sides into its machine, and a shell around it that does all it is
asked.

The first byte of a case's data chooses what goes wrong on the way; the rest is a conversation. Whatever comes: the
machine raises nothing, a device hears whole packets and nothing behind its own farewell, nothing of another device's
topics passes in either direction, and in the end nothing is left.
"""

from tidegate.gateway.connection.advising import AdviceInForce
from tidegate.gateway.connection.connect_plan import Limits
from tidegate.gateway.connection.instructions import (
    AskOthers,
    Choose,
    DeleteSession,
    Do,
    Instruction,
    Judge,
    MakeWay,
    ToBroker,
    ToDevice,
)
from tidegate.gateway.connection.known import Phase
from tidegate.gateway.connection.machine import Connection
from tidegate.gateway.connection.passing import TopicRules
from tidegate.gateway.connection.terms import Terms
from tidegate.gateway.identity.rights import Grant, Rights
from tidegate.gateway.identity.verdicts import REVOKED, Accepted
from tidegate.gateway.shared.classes import Classes
from tidegate.gateway.shared.counting import Counters
from tidegate.model.classes import DEFAULT_CLASSES
from tidegate.model.routes import Broker

RIGHTS = Rights("d", Grant(("telemetry/{device}", "telemetry/{device}/#"), ("downlink/{device}/#",)))
CLIENT = Accepted(name="d", method="derived", rights=RIGHTS, generation=1, key_id="k")
LIMITS = Limits(
    packet_bytes_max=1_000,
    topic_bytes_max=60,
    properties_max=8,
    keep_alive_s_max=60,
    credits_max=4.0,
    credits_per_s=20.0,
    held_bytes_max=500,
    hold_s_max=1.0,
)
STEP_S = 0.05


class FuzzedConnection:
    """``flaws``: bits that say what goes wrong. ``said`` to the device, ``passed`` to the broker."""

    def __init__(self, version: int, flaws: int) -> None:
        counters = Counters()
        terms = Terms(
            LIMITS,
            TopicRules(DEFAULT_CLASSES),
            Classes(DEFAULT_CLASSES, counters),
            AdviceInForce(lambda: 0.0),
            counters,
            own_user=b"gateway",
            own_password=b"word",
            token=lambda: "given",
        )
        self.now_s = 1.0
        self.counters = counters
        self.machine = Connection(terms, self.now_s)
        self.said = self.passed = b""
        self.is_closed = False
        self._flaws = flaws
        self._speaks_5 = True if version == 5 and flaws & 1 else None if flaws & 2 else False

    def piece(self, by_broker: bool, data: bytes) -> None:
        self.now_s += STEP_S
        machine = self.machine
        if by_broker:
            self._perform(machine.broker_data(data, self.now_s) if data else machine.broker_lost(self.now_s))
        elif data:
            self._perform(machine.device_data(data, self.now_s))
        else:
            self._perform(self._aside())
        self._perform(machine.woken(self.now_s))

    def end(self) -> None:
        machine = self.machine
        self._perform(machine.device_lost(self.now_s))
        for _ in range(50):
            if machine.phase is Phase.OVER:
                break
            self.now_s += 1.0
            self._perform(machine.woken(self.now_s))
            self._perform(machine.look(self.now_s))
        assert machine.phase is Phase.OVER, "it ends"
        assert self.counters.held == 0, "nothing waits any more"

    def _aside(self) -> list[Instruction]:
        """What may happen beside the bytes."""
        machine, flaws = self.machine, self._flaws
        if flaws & 4:
            return machine.device_full(True)
        if flaws & 8:
            return machine.judged_again(REVOKED, self.now_s)
        if flaws & 16:
            return machine.give_way(self.now_s, hears_broker=bool(flaws & 32))
        return machine.look(self.now_s)

    def _perform(self, todo: list[Instruction]) -> None:
        waiting = list(todo)
        while waiting:
            waiting += self._done(waiting.pop(0))

    def _done(self, one: Instruction) -> list[Instruction]:  # noqa: PLR0911 - one for each kind
        machine, now_s = self.machine, self.now_s
        match one:
            case ToDevice(data):
                assert not self.is_closed, "nothing is said behind the end"
                self.said += data
            case ToBroker(data):
                self.passed += data
            case Do.CLOSE_DEVICE:
                self.is_closed = True
            case Judge():
                return machine.judged(CLIENT)
            case Do.AWAIT_TURN:
                return machine.turned(not self._flaws & 64, now_s)
            case MakeWay():
                return machine.way_made(None)
            case Choose(tried):
                chosen = None if len(tried) > 1 else Broker(name=f"b{len(tried)}", host="h", port=1)
                return machine.chosen(chosen, self._speaks_5, now_s) if chosen or not self._flaws & 128 else []
            case Do.DIAL:
                return machine.reached()
            case DeleteSession():
                return machine.asked(0, now_s)
            case AskOthers():
                return machine.told(True, now_s)
        return []
