"""What waits of one connection: released when it may go, given up when it took too long. No IO, no clock.

While publishes wait nothing of the device may reach its broker for a while, so the gateway pings in its place. A device
that is gone leaves what waits behind: it still goes to the broker, at its pace, and the connection there ends with it.
"""

from tidegate.gateway.connection.session import Session
from tidegate.model.observations import HeldClient

# The broker hears something within this share of the keep-alive.
_PING_SHARE = 0.5
_FULL_SHARE = 0.5


class Waiting:
    """``due_s`` says when to call ``release``; None where nothing waits. ``gave_up``: something waited too long."""

    __slots__ = ("_full_s_max", "_full_since_s", "_passed_s", "_ping_s", "_session", "due_s", "gave_up")

    def __init__(self, session: Session, keep_alive_s: float, now_s: float) -> None:
        self.due_s: float | None = None
        self.gave_up = False
        self._session = session
        self._ping_s = _PING_SHARE * keep_alive_s
        self._full_s_max = _FULL_SHARE * keep_alive_s
        self._passed_s = now_s  # when something last went to the broker
        self._full_since_s: float | None = None

    @property
    def is_full(self) -> bool:
        return self._session.passing.hold.is_full

    @property
    def holds(self) -> bool:
        return self._session.passing.hold.waiting > 0

    def begin(self, now_s: float) -> None:
        """Something waits: see to it that it is looked at in time."""
        if self.is_full and self._full_since_s is None:
            self._full_since_s = now_s
        if self.due_s is None:
            self._passed_s = now_s
            self.due_s = self._session.passing.hold.due_s(now_s)

    def look(self, now_s: float) -> bytes:
        """Once a second, also where nothing waits: what is enforced may have changed. What the broker is sent."""
        passing = self._session.passing
        passing.follow_advice(now_s)
        if not passing.hold.waiting:
            return b""
        if self._full_since_s is not None and now_s - self._full_since_s > self._full_s_max:
            self.gave_up = True
            return b""
        ping = b""
        if now_s - self._passed_s >= self._ping_s:
            self._passed_s = now_s
            ping = self._session.ping()
        return ping + self.release(now_s)

    def release(self, now_s: float) -> bytes:
        """What the broker is sent now."""
        session = self._session
        data = session.released(now_s)
        if data:
            self._passed_s = now_s
        hold = session.passing.hold
        self.gave_up = hold.overdue(now_s)
        if not hold.is_full:
            self._full_since_s = None
        self.due_s = None if self.gave_up else hold.due_s(now_s)
        return data

    def abandon(self, reason: str, now_s: float) -> None:
        """Nothing more goes on. What was at QoS 0 is lost, and counted; the rest was never acknowledged."""
        self.due_s = None
        passing = self._session.passing
        lost = passing.abandon(now_s)
        if lost:
            passing.counters.drop(reason, lost)

    def held(self, client_id: str, now_s: float) -> HeldClient | None:
        """Whom an operator sees, where anything waits."""
        hold = self._session.passing.hold
        if not hold.waiting or hold.oldest_s is None:
            return None
        return HeldClient(
            client_id=client_id,
            reason=hold.reason,
            publishes=hold.waiting,
            waiting_s=round(now_s - hold.oldest_s, 3),
        )
