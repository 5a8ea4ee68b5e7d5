"""What is known of one connection: who it is, where it is, how far it has come, and what waits of it."""

from enum import Enum, auto
from typing import NamedTuple

from tidegate.gateway.connection.introducing import Introduction
from tidegate.gateway.connection.reaching import Reaching
from tidegate.gateway.connection.session import Session
from tidegate.gateway.connection.summary import ConnectSummary
from tidegate.gateway.connection.translation import Translation
from tidegate.gateway.connection.waiting import Waiting
from tidegate.gateway.identity.verdicts import Accepted
from tidegate.model.clients import ClientState
from tidegate.model.observations import HeldClient
from tidegate.model.routes import Broker

_VERSION_NAMES = {3: "3.1", 4: "3.1.1", 5: "5"}


class Phase(Enum):
    OPENING = auto()  # no CONNECT yet
    REACHING = auto()  # no broker yet
    FLOWING = auto()
    LEAVING = auto()  # the device is gone, what waits of it is not
    OVER = auto()


class Deletion(NamedTuple):
    """A CONNECT that ends a session at the broker, and how long after the device has left."""

    packet: bytes
    after_s: float


class KnownConnection:
    """Nothing is decided here; ``machine.Connection`` is what changes it."""

    __slots__ = ("ended_for", "gives_way", "is_half_closed", "phase", "reaching", "waiting")

    def __init__(self) -> None:
        self.phase = Phase.OPENING
        self.reaching: Reaching | None = None  # since CONNECT has come
        self.waiting: Waiting | None = None  # once a broker has accepted the client
        self.ended_for = ""  # why it was ended from here, if it was
        self.gives_way = False  # to another connection of the same client
        self.is_half_closed = False  # the device has sent all it will, and still listens

    @property
    def session(self) -> Session | None:
        return self.reaching.session if self.reaching is not None else None

    @property
    def translation(self) -> Translation | None:
        return self.reaching.translation if self.reaching is not None else None

    @property
    def broker(self) -> Broker | None:
        return self.reaching.broker if self.reaching is not None else None

    @property
    def client(self) -> Accepted | None:
        """Who it is, once that is known."""
        return self.reaching.client if self.reaching is not None else None

    @property
    def _introduction(self) -> Introduction | None:
        return self.reaching.introduction if self.reaching is not None else None

    @property
    def connect(self) -> ConnectSummary | None:
        return self._introduction.connect if self._introduction is not None else None

    @property
    def client_id(self) -> str:
        return self.connect.client_id if self.connect is not None else ""

    @property
    def is_accepted(self) -> bool:
        """Whether a broker has taken it on."""
        return self.waiting is not None

    @property
    def is_leaving(self) -> bool:
        """The device is gone, and something it sent still waits."""
        return self.phase is Phase.LEAVING

    @property
    def deletion(self) -> Deletion | None:
        """How and when the session at the broker has to be deleted, now that the device has left; None where never."""
        introduction, plan, translation = self._introduction, self.reaching and self.reaching.plan, self.translation
        may_not_stay = self.session is not None and self.session.may_not_stay
        if plan and translation is not None:  # the broker knows nothing of MQTT 5
            after_s = 0.0 if may_not_stay else translation.delete_session_after_s
            return None if after_s is None else Deletion(plan.deletion, after_s)
        if may_not_stay and introduction is not None and introduction.packet:
            return Deletion(introduction.deletion(), 0.0)
        return None

    @property
    def holds(self) -> bool:
        return self.waiting is not None and self.waiting.holds

    def held(self, now_s: float) -> HeldClient | None:
        """Whom an operator sees, where anything waits."""
        return None if self.waiting is None else self.waiting.held(self.client_id, now_s)

    @property
    def version_name(self) -> str:
        assert self.connect is not None
        return _VERSION_NAMES[self.connect.version] if self.translation is None else "5 on 3.1.1"

    def state(self, gateway: str, address: str, now_s: float) -> ClientState | None:
        """What can be said of it, once a broker has accepted it."""
        session, connect, client, broker = self.session, self.connect, self.client, self.broker
        if not self.is_accepted or session is None or connect is None or client is None or broker is None:
            return None
        hold = session.passing.hold
        return ClientState(
            gateway=gateway,
            client_id=connect.client_id,
            address=address,
            broker=broker.name,
            version=self.version_name,
            method=client.method,
            credits_left=round(hold.credits.state(now_s)[0], 1),
            subscriptions=len(session.subscribed.filters()),
            held=hold.waiting,
            held_s=0.0 if hold.oldest_s is None else round(now_s - hold.oldest_s, 3),
            limit=hold.met(now_s),
            rate_per_s=hold.credits.rate_per_s,
            expires_s=client.expires_s,
        )
