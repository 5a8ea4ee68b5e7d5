"""The gateway in a world: where it enforces advice, who sends more often waits here, with the production's own holds.

A device has at most ``window`` messages that are not acknowledged; while so many wait it samples on and combines. What
has waited for ``hold_s_max`` is not acknowledged in time: the connection is closed, and the device connects again at
once and sends it again, to the end of its own line. What waits of a device that leaves is never sent.
"""

from collections import deque
from collections.abc import Callable

import simpy

from tidegate.control.limiting.credits import ClientCredits
from tidegate.gateway.connection.holding import Hold
from tidegate.model.advice import Advice
from tidegate.sim.messages import SimulatedMessage
from tidegate.sim.scenario import Enforcement, Load
from tidegate.sim.timeline import Timeline

# Take a message in; what it is acknowledged with.
Send = Callable[[SimulatedMessage], Advice | None]
Acknowledged = Callable[[Advice | None, float], None]

# As a gateway has them by default: far more than a device of a scenario sends.
_CREDITS_MAX, _CREDITS_PER_S = 50_000.0, 10_000.0
_BYTES_MAX = 65_536


class SimulatedConnection:
    """One device's. ``acknowledged`` hears of every message that went on, with the advice behind it."""

    def __init__(self, gateway: "SimulatedGateway", load: Load, acknowledged: Acknowledged) -> None:
        self._gateway, self._acknowledged = gateway, acknowledged
        # A gateway enforces intervals, and these mean nothing to devices that send on change.
        self._class = None if load.event_driven or load.never_delay else load.name
        self._hold = Hold(
            ClientCredits(_CREDITS_MAX, _CREDITS_PER_S, gateway.timeline.now_s),
            bytes_max=_BYTES_MAX,
            hold_s_max=gateway.settings.hold_s_max,
        )
        self._messages: deque[SimulatedMessage] = deque()
        self._timer: simpy.Event | None = None

    @property
    def waiting(self) -> int:
        return len(self._messages)

    @property
    def has_room(self) -> bool:
        return len(self._messages) < self._gateway.settings.window

    def send(self, message: SimulatedMessage) -> None:
        now_s = self._gateway.timeline.now_s
        self._limit(now_s)
        if self._hold.passes(1, 1, now_s):
            self._acknowledged(self._gateway.send(message), now_s)
        else:
            self._messages.append(message)
            self._push(now_s)
            self._release(now_s)

    def follow(self, now_s: float) -> None:
        """What is advised has perhaps changed."""
        if self._messages:
            self._limit(now_s)
            self._release(now_s)

    def leave(self, now_s: float) -> None:
        self._hold.abandon(now_s)
        self._messages.clear()
        self._timer = None

    def _limit(self, now_s: float) -> None:
        advice = None if self._class is None else self._gateway.advice(now_s)
        interval_s = 0.0 if advice is None else advice.interval_of(self._class)
        self._hold.limit(1 / interval_s if interval_s > 0 else None, now_s)

    def _push(self, now_s: float) -> None:
        """The hold only counts: the messages of a scenario have no bytes."""
        self._hold.push(b"", qos=1, cost=1, now_s=now_s)

    def _wake(self, event: simpy.Event) -> None:
        if event is self._timer:
            self._release(self._gateway.timeline.now_s)

    def _release(self, now_s: float) -> None:
        for _ in self._hold.release(now_s):
            message = self._messages.popleft()
            message.arrived_s = now_s
            self._acknowledged(self._gateway.send(message), now_s)
        if self._hold.overdue(now_s):
            self._gateway.closed += 1
            self._hold.abandon(now_s)
            for _ in self._messages:
                self._push(now_s)
        due_s = self._hold.due_s(now_s)
        self._timer = None if due_s is None else self._gateway.timeline.at(due_s, self._wake)


class SimulatedGateway:
    """All connections. ``advice`` is what is in force, ``send`` hands a message to the queue; ``closed`` counts
    connections that were closed because something had waited for too long."""

    def __init__(
        self, timeline: Timeline, settings: Enforcement, advice: Callable[[float], Advice | None], send: Send
    ) -> None:
        self.timeline, self.settings, self.advice, self.send = timeline, settings, advice, send
        self.closed = 0
        self._connections: list[SimulatedConnection] = []

    @property
    def held(self) -> int:
        """Messages that wait here."""
        return sum(connection.waiting for connection in self._connections)

    @property
    def held_devices(self) -> int:
        return sum(connection.waiting > 0 for connection in self._connections)

    def connection(self, load: Load, acknowledged: Acknowledged) -> SimulatedConnection:
        self._connections.append(SimulatedConnection(self, load, acknowledged))
        return self._connections[-1]

    def follow(self, now_s: float) -> None:
        for connection in self._connections:
            connection.follow(now_s)
