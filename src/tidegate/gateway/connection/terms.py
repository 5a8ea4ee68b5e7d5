"""What all connections of one process go by, and what a session is made of."""

from collections.abc import Callable

import msgspec

from tidegate.control.limiting.credits import ClientCredits
from tidegate.gateway.connection.advising import AdviceInForce
from tidegate.gateway.connection.connect_plan import Limits
from tidegate.gateway.connection.holding import Hold
from tidegate.gateway.connection.noting import Noted, Noting
from tidegate.gateway.connection.passing import Passing, TopicRules
from tidegate.gateway.connection.session import Session
from tidegate.gateway.connection.summary import ConnectSummary
from tidegate.gateway.identity.verdicts import Accepted
from tidegate.gateway.shared.classes import Classes
from tidegate.gateway.shared.counting import Counters

# Credits, turns and the moment they are of, as an earlier connection of the client left them.
CreditsLeft = tuple[float, float, float]


class Terms:
    """``own_user`` and ``own_password`` are the gateway's at the brokers. ``token`` makes a word that nobody else has.
    ``noted``: what is acknowledged is noted there, if anywhere."""

    def __init__(
        self,
        limits: Limits,
        rules: TopicRules,
        classes: Classes,
        advice: AdviceInForce,
        counters: Counters,
        *,
        own_user: bytes = b"",
        own_password: bytes = b"",
        token: Callable[[], str] = lambda: "nobody",
        noted: Noted | None = None,
    ) -> None:
        self.limits = limits
        self.rules = rules
        self.classes = classes
        self.advice = advice
        self.counters = counters
        self.own_user = own_user
        self.own_password = own_password
        self.token = token
        self.noted = noted

    def session(
        self,
        connect: ConnectSummary,
        client: Accepted,
        left: CreditsLeft | None,
        place: float,
        now_s: float,
        *,
        translated: bool = False,
    ) -> Session:
        """``left`` is what the client has left of its credits, ``place`` where it stands between 0 and 1."""
        limits = self.limits
        version = 4 if translated else connect.version
        credits_now = ClientCredits(limits.credits_max, limits.credits_per_s, now_s, left, self.counters.overload)
        passing = Passing(
            Hold(
                credits_now,
                bytes_max=limits.held_bytes_max,
                hold_s_max=limits.hold_s_max,
                keep_alive_s=connect.keep_alive_s,
            ),
            self.rules,
            self.classes,
            self.advice,
            self.counters,
            enforces=limits.enforces_advice,
            version=version,
            tells_quota=limits.tells_quota and connect.version == 5,
            place=place,
        )
        takes_news = connect.version == 5 and connect.wants_problems
        # Behind a translation a packet may be longer than it came: the topic stands where an alias did.
        longer = limits.topic_bytes_max if translated else 0
        return Session(
            version,
            msgspec.structs.replace(limits, packet_bytes_max=limits.packet_bytes_max + longer) if longer else limits,
            self.advice,
            passing,
            client.rights,
            keep_alive_s=connect.keep_alive_s,
            news_bytes_max=connect.packet_bytes_max if takes_news else 0,
            packet_bytes_max=connect.packet_bytes_max,
            assigned_id=connect.assigned_id,
            may_be_asked=connect.authenticates and version == 5,
            noting=Noting(self.noted, version) if self.noted is not None else None,
            place=place,
        )

    def keep_alive_of(self, connect: ConnectSummary, session: Session) -> float:
        """How long the device may be silent, as far as anybody said; one that names no time gets the longest."""
        said_s = connect.keep_alive_s if session.keep_alive_s is None else session.keep_alive_s
        return float(min(said_s or self.limits.keep_alive_s_max, self.limits.keep_alive_s_max))
