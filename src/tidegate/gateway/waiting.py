"""What waits of one connection, driven by the event loop: released when it may go, ended when it took too long.

While publishes wait nothing of the device may reach its broker for a while, so the gateway pings in its place. A device
that is gone leaves what waits behind: it still goes to the broker, at its pace, and the connection there ends with it.
"""

import asyncio
import time
from typing import TYPE_CHECKING

from tidegate.model.observations import HeldClient
from tidegate.mqtt.violations import QUOTA_EXCEEDED

if TYPE_CHECKING:
    from tidegate.gateway.broker_side import BrokerSide
    from tidegate.gateway.connection.session import Session
    from tidegate.gateway.device_side import DeviceSide

# The broker hears something within this share of the keep-alive.
_PING_SHARE = 0.5
TOO_LONG = "held too long"


class Waiting:
    __slots__ = (
        "_device",
        "_finishing",
        "_full_s_max",
        "_full_since_s",
        "_passed_s",
        "_ping_s",
        "_session",
        "_side",
        "_timer"
    )  # fmt: skip

    def __init__(self, device: "DeviceSide", session: "Session", side: "BrokerSide", keep_alive_s: float) -> None:
        self._device = device
        self._session = session
        self._side = side
        self._ping_s = _PING_SHARE * keep_alive_s
        self._timer: asyncio.TimerHandle | None = None
        self._passed_s = time.monotonic()  # when something last went to the broker
        self._full_since_s: float | None = None
        self._full_s_max = keep_alive_s / 2
        self._finishing = False  # the device is gone

    @property
    def is_full(self) -> bool:
        return self._session.passing.hold.is_full

    def begin(self, now_s: float) -> None:
        """Something waits: see to it that it is looked at in time."""
        if self.is_full and self._full_since_s is None:
            self._full_since_s = now_s
            self._device.pause_reading()
        if self._timer is None:
            self._passed_s = now_s
            self._arm(now_s)

    def look(self, now_s: float) -> None:
        """Once a second, also where nothing waits: what is enforced may have changed."""
        passing = self._session.passing
        passing.follow_advice(now_s)
        if not passing.hold.waiting:
            return
        if now_s - self._passed_s >= self._ping_s:
            self._passed_s = now_s
            self._side.write(self._session.ping())
        if self._full_since_s is not None and now_s - self._full_since_s > self._full_s_max:
            self._give_up()
        else:
            self._release()

    def held(self, now_s: float) -> HeldClient | None:
        """Whom an operator sees, where anything waits."""
        hold = self._session.passing.hold
        if not hold.waiting or hold.oldest_s is None:
            return None
        return HeldClient(
            client_id=self._device.client_id,
            reason=hold.reason,
            publishes=hold.waiting,
            waiting_s=round(now_s - hold.oldest_s, 3),
        )

    def finish(self) -> None:
        """The device is gone. What it sent still goes on, at its pace."""
        self._finishing = True
        self._release()

    def abandon(self, reason: str) -> None:
        """Nothing more goes on. What was at QoS 0 is lost, and counted; the rest was never acknowledged."""
        self._stop()
        lost = self._session.passing.abandon(time.monotonic())
        if lost:
            self._session.passing.counters.drop(reason, lost)

    def _arm(self, now_s: float) -> None:
        due_s = self._session.passing.hold.due_s(now_s)
        if due_s is not None:
            delay_s = max(0.0, due_s - now_s)
            self._timer = asyncio.get_running_loop().call_later(delay_s, self._release)

    def _release(self) -> None:
        self._stop()
        now_s, session = time.monotonic(), self._session
        data = session.released(now_s)
        if data:
            self._passed_s = now_s
            self._side.write(data)
        if session.answer:
            self._device.deliver(session.take_answer())
        hold = session.passing.hold
        if hold.overdue(now_s):
            self._give_up()
            return
        if self._full_since_s is not None and not hold.is_full:
            self._full_since_s = None
            self._device.resume_reading()
        self._arm(now_s)
        if self._finishing and self._timer is None:
            self._device.release_broker()

    def _give_up(self) -> None:
        self._stop()
        if self._finishing:
            self._session.passing.counters.refuse(TOO_LONG)
            self._device.release_broker()
        else:
            self._device.end(TOO_LONG, QUOTA_EXCEEDED)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
