"""From CONNECT to a broker that has answered it: who the client is, its turn, its broker. No IO, no clock.

A client that may come in waits for its turn, ends its own older connection if it has one, and is dialled to a broker,
to the next one if that does not answer. One that a broker hangs up on while it answers others is refused at once: it
would wait for nothing, and everybody else with it. A client that speaks MQTT 5 is tried in its own version first; a
broker that does not know it is spoken to in 3.1.1, by a translation, from then on.
"""

from enum import Enum, auto

import msgspec

from tidegate.gateway.connection.advising import place_of
from tidegate.gateway.connection.connect_plan import ConnectPlan, plan_connect
from tidegate.gateway.connection.instructions import (
    AskOthers,
    Choose,
    DeleteSession,
    Do,
    Instruction,
    Judge,
    Learn5,
    MakeWay,
    ToBroker,
    TurnEnds,
)
from tidegate.gateway.connection.introducing import Introduction, introduce
from tidegate.gateway.connection.opening import connack_refusing
from tidegate.gateway.connection.session import Session
from tidegate.gateway.connection.terms import CreditsLeft, Terms
from tidegate.gateway.connection.translation import Translation
from tidegate.gateway.identity.verdicts import Accepted, Refused
from tidegate.model.routes import Broker
from tidegate.mqtt.connect import Connect
from tidegate.mqtt.violations import SERVER_UNAVAILABLE, UNSPECIFIED, Violation

_HUNG_UP_ON = ("refused by the broker", UNSPECIFIED, "The broker hangs up on this client alone.")
HUNG_UP = -1  # in the place of a code: the broker closed instead of an answer


class Step(Enum):
    JUDGING = auto()
    TURN = auto()
    WAY = auto()
    DIALLING = auto()
    DELETING = auto()
    ANSWERING = auto()
    ASKING_OTHERS = auto()
    OVER = auto()


class Failure(msgspec.Struct, frozen=True):
    """Why no broker was reached, in words that are counted, and what the device is told."""

    reason: str
    answer: bytes


class Reaching:
    """Each call returns what is to be done next. ``session`` and ``translation`` are those of the broker that is being
    asked; ``failure`` is there once there is no more to try, ``broker`` has answered once ``has_answer`` says so."""

    __slots__ = (
        "_began_s",
        "_deadline_s",
        "_hung_up",
        "_known_5",
        "_left",
        "_packet",
        "_said",
        "_terms",
        "_tried",
        "broker",
        "client",
        "failure",
        "has_answer",
        "introduction",
        "plan",
        "session",
        "step",
        "translation",
    )  # fmt: skip

    def __init__(self, terms: Terms, said: Connect, packet: bytes) -> None:
        self.step = Step.JUDGING
        self.client: Accepted | None = None
        self.introduction: Introduction | None = None
        self.broker: Broker | None = None
        self.session: Session | None = None
        self.translation: Translation | None = None
        self.plan: ConnectPlan | None = None
        self.failure: Failure | None = None
        self.has_answer = False
        self._terms = terms
        self._said = said
        self._packet = packet
        self._left: CreditsLeft | None = None
        self._known_5: bool | None = None
        self._tried: set[str] = set()
        self._hung_up: list[Broker] = []
        self._began_s = 0.0
        self._deadline_s: float | None = None

    @property
    def due_s(self) -> float | None:
        """When the broker that is being asked has taken too long."""
        return self._deadline_s

    def begin(self, now_s: float) -> list[Instruction]:
        self._deadline_s = now_s + self._terms.limits.connect_s_max
        return [Judge(self._said)]

    # -- who it is, and whether it may come now

    def judged(self, found: Accepted | Refused) -> list[Instruction]:
        if self.step is not Step.JUDGING:
            return []
        if isinstance(found, Refused):
            return self._fail(found.reason, found.code, found.sentence)
        self.client, self._deadline_s = found, None
        try:
            self.introduction = introduce(self._said, self._packet, found, self._terms)
        except Violation as violation:
            return self._fail(violation.reason, violation.code)
        self.step = Step.TURN
        return [Do.AWAIT_TURN]

    def disliked(self) -> list[Instruction]:
        """A broker has just hung up on this client, and answers others."""
        return self._fail(*_HUNG_UP_ON) if self.step is Step.TURN else []

    def turned(self, granted: bool, now_s: float) -> list[Instruction]:
        """It is this client's turn, or it has waited for too long."""
        if self.step is not Step.TURN:
            return []
        if not granted:
            return self._fail("no broker available", SERVER_UNAVAILABLE)
        assert self.introduction is not None
        self.step, self._began_s = Step.WAY, now_s
        self._tried, self._hung_up = set(), []
        return [MakeWay(self.introduction.connect)]

    def way_made(self, left: CreditsLeft | None) -> list[Instruction]:
        """``left``: what the client has left of its credits, where it was here before."""
        if self.step is not Step.WAY:
            return []
        self._left = left
        return self._next()

    # -- one broker after the other

    def chosen(self, broker: Broker | None, speaks_5: bool | None, now_s: float) -> list[Instruction]:
        """The broker that is dialled now; None where none is left to try."""
        if self.step is not Step.DIALLING:
            return []
        if broker is None:
            return self._none_answers(now_s)
        self._tried.add(broker.name)
        self.broker, self._known_5 = broker, speaks_5
        return self._dial(broker, now_s)

    def reached(self) -> list[Instruction]:
        """The connection to the broker is there."""
        if self.step is not Step.DIALLING:
            return []
        assert self.introduction is not None
        self.step = Step.ANSWERING
        return [ToBroker(self.plan.packet if self.plan is not None else self.introduction.packet)]

    def not_reached(self, *, own_shortage: bool = False) -> list[Instruction]:
        """``own_shortage``: it was for want of a file or port of the gateway's own, which the next one would meet
        too."""
        if self.step is not Step.DIALLING:
            return []
        if own_shortage:
            return self._fail("no file or port left", SERVER_UNAVAILABLE)
        return self._next()

    def asked(self, code: int | None, now_s: float) -> list[Instruction]:
        """What the broker said to the CONNECT that deletes a session; None where it is silent."""
        if self.step is not Step.DELETING or self.broker is None:
            return []
        if code is None or code == HUNG_UP:
            if code == HUNG_UP:
                self._hung_up.append(self.broker)
            return self._next()
        self.step, self._deadline_s = Step.DIALLING, now_s + self._terms.limits.broker_s_max
        return [Do.DIAL]

    def lost(self) -> list[Instruction]:
        """The broker hung up before it had answered."""
        if self.step is not Step.ANSWERING or self.broker is None:
            return []
        if self.is_asked:
            return self._fail("refused by the broker", UNSPECIFIED)  # another one would not know what was said
        self._hung_up.append(self.broker)
        return self._next()

    def heard(self, data: bytes, now_s: float) -> tuple[bytes, list[Instruction]]:
        """Bytes of the broker that is asked: what the device is sent of them, and what is to be done."""
        session, broker = self.session, self.broker
        if self.step is not Step.ANSWERING or session is None or broker is None:
            return b"", []
        forward = session.from_broker(data)
        if session.return_code is None:
            if not session.problem:
                if session.authenticates:
                    self._deadline_s = now_s + self._terms.limits.connect_s_max
                return forward, []
            self._hung_up.append(broker)
            return b"", [Do.ABORT_BROKER, *self._next()]
        if session.speaks_older:
            self._known_5 = False
            return b"", [Do.ABORT_BROKER, Learn5(broker, False), *self._dial(broker, now_s)]
        self.step, self.has_answer, self._deadline_s = Step.OVER, True, None
        self._forget_credentials()
        return forward, [TurnEnds(now_s - self._began_s, True)]

    @property
    def is_asked(self) -> bool:
        """Whether the broker has questions to the device before it answers CONNECT."""
        return self.step is Step.ANSWERING and self.session is not None and self.session.authenticates

    def answers(self, data: bytes, now_s: float) -> list[Instruction]:
        """What the device says to them."""
        assert self.session is not None
        forward = self.session.from_device_early(data)
        if self.session.problem:
            return [Do.ABORT_BROKER, *self._fail(self.session.problem, self.session.code)]
        self._deadline_s = now_s + self._terms.limits.broker_s_max
        return [ToBroker(forward)] if forward else []

    def woken(self) -> list[Instruction]:
        """The broker that is asked takes too long, or whoever knows who the client is."""
        if self.step is Step.JUDGING:
            return self._fail("identity service away", SERVER_UNAVAILABLE)
        if self.step not in (Step.DIALLING, Step.ANSWERING):
            return []
        if self.is_asked:
            return [Do.ABORT_BROKER, *self._fail("refused by the broker", UNSPECIFIED)]
        return [Do.ABORT_BROKER, *self._next()]

    def told(self, is_well: bool, now_s: float) -> list[Instruction]:
        """Whether a broker that hung up has answered anybody else."""
        if self.step is not Step.ASKING_OTHERS:
            return []
        if is_well:
            return self._fail(*_HUNG_UP_ON)
        return self._again(now_s)

    def _next(self) -> list[Instruction]:
        self.step, self._deadline_s = Step.DIALLING, None
        return [Choose(frozenset(self._tried))]

    def _dial(self, broker: Broker, now_s: float) -> list[Instruction]:
        """In the version of the client, else, where it is MQTT 5 and the broker does not know that, in 3.1.1."""
        assert self.introduction is not None
        assert self.client is not None
        connect, said = self.introduction.connect, self.introduction.said
        place = place_of(self.client.name.encode())
        self.step, self._deadline_s = Step.DIALLING, now_s + self._terms.limits.broker_s_max
        if connect.version < 5 or self._known_5 is not False:
            self.plan = self.translation = None
            self.session = self._terms.session(connect, self.client, self._left, place, now_s)
            return [Do.DIAL]
        try:
            plan = self.plan = plan_connect(said, assigned=connect.assigned_id, limits=self._terms.limits)
        except Violation as violation:
            return self._fail(violation.reason, violation.code)
        self.session = self._terms.session(connect, self.client, self._left, place, now_s, translated=True)
        self.translation = Translation(plan, self._terms.limits, self.session.news, self.client.rights)
        if plan.deletes_first:
            self.step, self._deadline_s = Step.DELETING, None  # who asks keeps to the time
            return [DeleteSession(broker, plan.deletion)]
        return [Do.DIAL]

    def _forget_credentials(self) -> None:
        """Nobody needs them any more. What is told the broker has the gateway's own in it, unless they were passed."""
        self._packet = b""
        self._said = msgspec.structs.replace(self._said, password=None)
        if self.introduction is not None and self.client is not None and self.client.passes_credentials:
            self.introduction = self.introduction.without_credentials()

    def refusal(self, code: int, sentence: str) -> bytes:
        """The CONNACK for a client that has to go before a broker has answered."""
        return connack_refusing(self._said.version, code, sentence) if code else b""

    # -- nobody

    def _none_answers(self, now_s: float) -> list[Instruction]:
        if self._hung_up:
            self.step = Step.ASKING_OTHERS
            return [AskOthers(tuple(self._hung_up), self._began_s)]
        return self._again(now_s)

    def _again(self, now_s: float) -> list[Instruction]:
        """It keeps its place in line."""
        self.step = Step.TURN
        return [TurnEnds(now_s - self._began_s, False), Do.AWAIT_TURN]

    def _fail(self, reason: str, code: int, sentence: str = "") -> list[Instruction]:
        self.step, self._deadline_s = Step.OVER, None
        self.failure = Failure(reason, self.refusal(code, sentence))
        return [Do.LEAVE_LINE]
