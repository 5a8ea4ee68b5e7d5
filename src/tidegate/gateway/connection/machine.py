"""One device's connection, from its first byte to the end of what it left behind. No IO, no clock.

What happens comes in by a call each: bytes of the device and of the broker, what became of what was asked for, the
time. Out come instructions. A device must say CONNECT in time; it is then judged and brought to a broker
(``reaching``), and what it sends meanwhile waits. Once a broker has answered, bytes flow both ways through the session,
and for an MQTT 5 device on a 3.1.1 broker through a translation before it: plain bytes need not come in here then, the
shell may hand them to ``session`` itself, and calls ``attend`` where that asks for it.

A side that cannot be written to any further stops the other from being read, so the gateway never holds more than its
buffers. When one side goes, the other gets what is still buffered for it and is closed; publishes that wait for their
turn still go to the broker at their pace.
"""

from collections.abc import Callable

from tidegate.gateway.connection.instructions import Do, Instruction, ToBroker, ToDevice, WakeAt
from tidegate.gateway.connection.known import KnownConnection, Phase
from tidegate.gateway.connection.opening import Opened, Opening, Refusal
from tidegate.gateway.connection.reaching import Reaching
from tidegate.gateway.connection.session import REFUSED_COST
from tidegate.gateway.connection.terms import CreditsLeft, Terms
from tidegate.gateway.connection.waiting import Waiting
from tidegate.gateway.identity.verdicts import Accepted, Refused
from tidegate.model.routes import Broker
from tidegate.mqtt.client import DISCONNECT
from tidegate.mqtt.packets import Disconnect, encode
from tidegate.mqtt.properties import EMPTY, REASON_STRING, Properties
from tidegate.mqtt.violations import NOT_AUTHORIZED, PACKET_TOO_LARGE, QUOTA_EXCEEDED

# A device may be silent for so many times its keep-alive; a broker that watches it as well shall be the first to act.
SILENT_FACTOR, SILENT_GRACE_S = 1.5, 1.0
NEARLY_SILENT_FACTOR = 0.9
# What a device may send before a broker has answered; reading is paused, so this is a chunk or two.
EARLY_BYTES_MAX = 262_144
# A device that is sent messages at QoS 1 and 2 acknowledges some of them within this time: whatever it does not take
# has to be kept for it.
UNACKNOWLEDGED_S_MAX = 120.0
# How long a side that sends no more may take to hear the rest.
LINGER_S = 5.0
NO_CONNECT, TOO_LONG, LEFT = "no CONNECT in time", "held too long", "held when it left"
TAKEN_OVER, SHUTTING_DOWN, KEEP_ALIVE_EXCEEDED = 0x8E, 0x8B, 0x8D


class Connection(KnownConnection):
    __slots__ = (
        "_broker_is_full", "_deadline_s", "_device_is_full", "_early", "_is_closing",
        "_opening", "_reads_broker", "_said_due_s", "_terms", "reads_device",
    )  # fmt: skip

    def __init__(self, terms: Terms, now_s: float) -> None:
        super().__init__()
        self._terms = terms
        self._opening = Opening(terms.limits.connect_bytes_max, terms.limits.properties_max)
        self._early = b""
        self._is_closing = False  # the device's side
        self._device_is_full = self._broker_is_full = False
        self.reads_device = self._reads_broker = True
        self._deadline_s: float | None = now_s + terms.limits.connect_s_max
        self._said_due_s: float | None = None

    # -- the device

    def device_data(self, data: bytes, now_s: float) -> list[Instruction]:
        """Bytes of the device, where they cannot go straight to the session."""
        match self.phase:
            case Phase.FLOWING:
                return self._out(self._flow_up(data, now_s))
            case Phase.OPENING if not self._is_closing:
                return self._out(self._open(data, now_s))
            case Phase.REACHING if not self._is_closing:
                return self._out(self._receive_early(data, now_s))
        return []

    def device_ended(self, now_s: float) -> list[Instruction]:
        """The device sends no more. What it sent is still delivered, and answered where the broker does."""
        if self.phase is not Phase.FLOWING or self.holds or self.is_half_closed:
            return []
        self.is_half_closed = True
        self._deadline_s = now_s + LINGER_S
        return self._out([Do.END_WRITING])

    def device_lost(self, now_s: float) -> list[Instruction]:
        self._is_closing, self._device_is_full, self._deadline_s = True, False, None
        session = self.session
        if session is not None:
            session.leave()
        if self.phase is Phase.FLOWING and self.holds and not self.ended_for and not self.gives_way:
            self.phase = Phase.LEAVING
            return self._out(self._release(now_s))
        return self._out(self._let_go(now_s))

    def device_full(self, is_full: bool) -> list[Instruction]:
        """No more can be written to the device for now, or again."""
        self._device_is_full = is_full
        return self._out([])

    # -- what was asked for

    def judged(self, found: Accepted | Refused) -> list[Instruction]:
        return self._reach(lambda reaching: reaching.judged(found))

    def disliked(self) -> list[Instruction]:
        """Its turn would be in vain: a broker has just hung up on it."""
        return self._reach(Reaching.disliked)

    def turned(self, granted: bool, now_s: float) -> list[Instruction]:
        return self._reach(lambda reaching: reaching.turned(granted, now_s))

    def way_made(self, left: CreditsLeft | None) -> list[Instruction]:
        return self._reach(lambda reaching: reaching.way_made(left))

    def chosen(self, broker: Broker | None, speaks_5: bool | None, now_s: float) -> list[Instruction]:
        return self._reach(lambda reaching: reaching.chosen(broker, speaks_5, now_s))

    def reached(self) -> list[Instruction]:
        return self._reach(Reaching.reached)

    def not_reached(self, *, own_shortage: bool = False) -> list[Instruction]:
        return self._reach(lambda reaching: reaching.not_reached(own_shortage=own_shortage))

    def asked(self, code: int | None, now_s: float) -> list[Instruction]:
        return self._reach(lambda reaching: reaching.asked(code, now_s))

    def told(self, is_well: bool, now_s: float) -> list[Instruction]:
        return self._reach(lambda reaching: reaching.told(is_well, now_s))

    # -- the broker

    def broker_data(self, data: bytes, now_s: float) -> list[Instruction]:
        """Bytes of the broker, where they cannot go straight to the session."""
        reaching = self.reaching
        if self.phase is Phase.REACHING and reaching is not None:
            forward, todo = reaching.heard(data, now_s)
            if not reaching.has_answer:
                return self._out(self._tell(forward) + todo + self._failed(reaching))
            return self._out(todo + self._begin_flow(forward, now_s))
        session = self.session
        if self.phase not in (Phase.FLOWING, Phase.LEAVING) or session is None:
            return []
        todo = self._deliver(session.from_broker(data))
        if session.problem:
            todo += self._end(session.problem, session.code, sentence=session.sentence)
        return self._out(todo)

    def broker_lost(self, now_s: float) -> list[Instruction]:
        if self.phase is Phase.REACHING:
            return self._reach(Reaching.lost)
        if self.phase not in (Phase.FLOWING, Phase.LEAVING):
            return []
        todo: list[Instruction] = []
        if self.translation is not None and not self.is_half_closed:
            # A broker that speaks MQTT 5 has said why itself. Brokers differ in how long they wait; one that ends so
            # long a silence does it for that.
            is_silent = self._is_silent(now_s, NEARLY_SILENT_FACTOR)
            todo += self._tell(self._farewell(KEEP_ALIVE_EXCEEDED if is_silent else SHUTTING_DOWN))
        return self._out(todo + self._close() + self._let_go(now_s))

    def broker_full(self, is_full: bool) -> list[Instruction]:
        self._broker_is_full = is_full
        return self._out([])

    # -- time

    def woken(self, now_s: float) -> list[Instruction]:
        """It is as late as was asked for."""
        waiting = self.waiting
        self._said_due_s = None
        is_due = waiting is not None and waiting.due_s is not None and now_s >= waiting.due_s
        return self._out(self._release(now_s) if is_due else [])

    def look(self, now_s: float) -> list[Instruction]:
        """Once a second: is the device alive, does the broker know, has anything taken or waited for too long.

        What a device and a broker may take to begin is reckoned in seconds: no timer is set for each of them.
        """
        reaching = self.reaching
        if self._deadline_s is not None and now_s >= self._deadline_s:
            self._deadline_s = None
            return self._out(self._end(NO_CONNECT) if self.phase is Phase.OPENING else self._close())
        if self.phase is Phase.REACHING and reaching is not None:
            is_late = reaching.due_s is not None and now_s >= reaching.due_s
            return self._out(reaching.woken() + self._failed(reaching)) if is_late else []
        waiting, session = self.waiting, self.session
        if waiting is None or session is None or self.phase not in (Phase.FLOWING, Phase.LEAVING):
            return []
        session.look()
        if self._is_read and self._is_silent(now_s, SILENT_FACTOR, SILENT_GRACE_S):
            return self._out(self._end("keep-alive exceeded", KEEP_ALIVE_EXCEEDED))
        if session.unacknowledged_s(now_s) > UNACKNOWLEDGED_S_MAX:
            return self._out(self._end("does not acknowledge", QUOTA_EXCEEDED))
        data = waiting.look(now_s)
        return self._out(self._sent(data, now_s)) if data or waiting.holds or waiting.gave_up else []

    def attend(self, now_s: float) -> list[Instruction]:
        """There is more to the session than bytes: answers, a problem, publishes that wait."""
        return self._out(self._attended(now_s))

    # -- what others decide

    def end(self, reason: str, code: int = 0, sentence: str = "") -> list[Instruction]:
        """Close because of something that is counted. ``code`` is for a device that speaks MQTT 5."""
        return self._out(self._end(reason, code, sentence=sentence))

    def expel(self, reason: str, code: int, sentence: str, now_s: float) -> list[Instruction]:
        """It may not be here any more: it is closed, what waits of it goes nowhere, and its will is not published."""
        quiet: list[Instruction] = [ToBroker(DISCONNECT)] if self.phase in (Phase.FLOWING, Phase.LEAVING) else []
        if self.phase is Phase.LEAVING:
            return self._out(quiet + self._let_go(now_s))
        return self._out(quiet + self._end(reason, code, sentence=sentence))

    def judged_again(self, found: Accepted | Refused, now_s: float) -> list[Instruction]:
        """Something has changed about who may do what: it stays, with the rights it has now, or goes."""
        reaching, session = self.reaching, self.session
        if isinstance(found, Refused):
            return self.expel(found.reason, found.code, found.sentence, now_s)
        if reaching is None or reaching.client is None:
            return []
        reaching.client = found
        if self.translation is not None:
            self.translation.rights = found.rights
        will = self.connect.will if self.connect is not None else None
        keeps_will = will is None or found.rights.may_publish(will.topic)
        if session is None or (session.renew_rights(found.rights) and keeps_will):
            return []
        return self.expel("not its own topic", NOT_AUTHORIZED, "This client may not do any more what it does.", now_s)

    def dismiss(self) -> list[Instruction]:
        """The gateway goes: the device shall come again, elsewhere, and its will is not published for that."""
        quiet: list[Instruction] = [ToBroker(DISCONNECT)] if self.phase is Phase.FLOWING else []
        return self._out(quiet + self._end("draining", SHUTTING_DOWN))

    def give_way(self, now_s: float, *, hears_broker: bool) -> list[Instruction]:
        """The same client connects anew. ``hears_broker``: the broker's farewell would be seen."""
        if self.waiting is None or self.phase not in (Phase.FLOWING, Phase.LEAVING):
            return []
        self.gives_way = True
        self.waiting.abandon(LEFT, now_s)
        todo = self._tell(self._farewell(TAKEN_OVER))
        if hears_broker:
            if not self.is_half_closed:
                # A client that is taken over has not died: no will is published, as the embedded brokers have it.
                todo.append(ToBroker(DISCONNECT))
            todo.append(Do.END_WRITING)
        return self._out(todo)

    # -- from CONNECT to a broker

    def _open(self, data: bytes, now_s: float) -> list[Instruction]:
        match self._opening.receive(data):
            case Refusal(reason, answer):
                return self._end(reason, answer=answer)
            case Opened() as opened:
                self.phase, self._deadline_s = Phase.REACHING, None
                self._terms.counters.bytes_in += len(opened.packet)
                self._early = opened.rest
                self.reaching = Reaching(self._terms, opened.said, opened.packet)
                return self.reaching.begin(now_s)
        return []

    def _receive_early(self, data: bytes, now_s: float) -> list[Instruction]:
        """Before a broker has answered: what is not an answer to its questions waits for that."""
        reaching = self.reaching
        if reaching is not None and reaching.is_asked and not self._early:
            return reaching.answers(data, now_s) + self._failed(reaching)
        self._early += data
        return self._end("packet too large", PACKET_TOO_LARGE) if len(self._early) > EARLY_BYTES_MAX else []

    def _reach(self, step: Callable[[Reaching], list[Instruction]]) -> list[Instruction]:
        reaching = self.reaching
        if self.phase is not Phase.REACHING or reaching is None or self._is_closing:
            return []
        return self._out(step(reaching) + self._failed(reaching))

    def _failed(self, reaching: Reaching) -> list[Instruction]:
        failure = reaching.failure
        return [] if failure is None else self._end(failure.reason, answer=failure.answer)

    def _begin_flow(self, forward: bytes, now_s: float) -> list[Instruction]:
        """A broker answered: from now on bytes pass, those first that had to wait."""
        session, connect = self.session, self.connect
        assert session is not None
        assert connect is not None
        self.phase = Phase.FLOWING
        told = self._deliver(forward)
        if session.return_code:
            self._terms.counters.refuse("refused by the broker")
            return told + self._close()
        session.heard_s = now_s
        self.waiting = Waiting(session, self._terms.keep_alive_of(connect, session), now_s)
        # Whoever hears CONNACK may come again at once, at another process: that one has to know of this one by then.
        todo = [Do.FLOW, *told]
        if session.problem:
            return todo + self._end(session.problem, session.code, sentence=session.sentence)
        early, self._early = self._early, b""
        return todo + self._flow_up(early, now_s) if early else todo

    # -- while bytes flow

    def _flow_up(self, data: bytes, now_s: float) -> list[Instruction]:
        session, translation = self.session, self.translation
        assert session is not None
        if translation is not None:
            data = translation.received(data)
            session.passing.expiries_s = translation.message_expiry_s
            unpaid, translation.unpaid = translation.unpaid, 0
            if unpaid and not session.pay(REFUSED_COST * unpaid, now_s):
                return self._end(session.problem, session.code, sentence=session.sentence)
        forward = session.from_device(data, now_s)
        todo: list[Instruction] = [ToBroker(forward)] if forward else []
        if session.attention:
            todo += self._attended(now_s)
        return todo + self._attend_translation()

    def _deliver(self, data: bytes) -> list[Instruction]:
        """The broker's packets, for the device."""
        translation = self.translation
        if translation is None:
            return self._tell(data)
        return self._tell(translation.wrap(data) + translation.answer()) + self._attend_translation()

    def _attended(self, now_s: float) -> list[Instruction]:
        session, waiting = self.session, self.waiting
        if session is None:
            return []
        session.attention = False
        todo: list[Instruction] = []
        if session.answer:
            answer = session.take_answer()
            todo += self._end("answers are not read") if self._device_is_full else self._deliver(answer)
        if session.problem:
            todo += self._end(session.problem, session.code, sentence=session.sentence)
        elif waiting is not None and waiting.holds:
            waiting.begin(now_s)
        return todo

    def _attend_translation(self) -> list[Instruction]:
        translation = self.translation
        if translation is None:
            return []
        answer = translation.answer()
        if answer and self._device_is_full:
            return self._end("answers are not read")
        todo = self._tell(answer)
        if (upstream := translation.answer_upstream()) and self.session is not None:
            todo.append(ToBroker(self.session.own_up(upstream)))
        if translation.problem:
            todo += self._end(translation.problem, translation.code)
        elif translation.closes_without_disconnect:
            todo += self._close()
        return todo

    def _release(self, now_s: float) -> list[Instruction]:
        assert self.waiting is not None
        return self._sent(self.waiting.release(now_s), now_s)

    def _sent(self, data: bytes, now_s: float) -> list[Instruction]:
        """What has waited goes to the broker, and what that leads to."""
        waiting, session = self.waiting, self.session
        assert waiting is not None
        assert session is not None
        todo: list[Instruction] = [ToBroker(data)] if data else []
        if session.answer:
            answer = session.take_answer()
            if self.phase is Phase.FLOWING:
                todo += self._deliver(answer)
        if waiting.gave_up:
            if self.phase is Phase.FLOWING:
                met = session.passing.hold.met(now_s)
                return todo + self._end(TOO_LONG, QUOTA_EXCEEDED, sentence=met.sentence() if met is not None else "")
            self._terms.counters.refuse(TOO_LONG)
            return todo + self._let_go(now_s)
        if self.phase is Phase.LEAVING and waiting.due_s is None:
            todo += self._let_go(now_s)
        return todo

    # -- the end

    def _end(self, reason: str, code: int = 0, answer: bytes = b"", sentence: str = "") -> list[Instruction]:
        if self._is_closing:
            return []
        self.ended_for = reason
        self._terms.counters.refuse(reason)
        if self.phase is Phase.REACHING and self.reaching is not None:
            answer = answer or self.reaching.refusal(code, sentence)
        return self._tell(answer or self._farewell(code, sentence)) + self._close()

    def _close(self) -> list[Instruction]:
        if self._is_closing:
            return []
        self._is_closing = True
        return [Do.CLOSE_DEVICE]

    def _let_go(self, now_s: float) -> list[Instruction]:
        """Nothing of this device waits here any more: the broker may know that it is gone."""
        if self.phase is Phase.OVER:
            return []
        was_begun = self.phase in (Phase.FLOWING, Phase.LEAVING)
        self.phase = Phase.OVER
        if self.waiting is not None:
            self.waiting.abandon(TOO_LONG if self.ended_for == TOO_LONG else LEFT, now_s)
        if was_begun and self.session is not None:
            self.session.forget()
            if self.translation is not None:
                self._terms.counters.drop("larger than the client takes", self.translation.dropped)
                self._terms.counters.drop("not its own topic", self.translation.refused)
        return [Do.CLOSE_BROKER, Do.FORGET] if was_begun else [Do.ABORT_BROKER]

    def _tell(self, data: bytes) -> list[Instruction]:
        return [ToDevice(data)] if data and not self._is_closing else []

    def _farewell(self, code: int, sentence: str = "") -> bytes:
        """What a device that speaks MQTT 5 is told at the end."""
        connect, session = self.connect, self.session
        if not code or connect is None or connect.version < 5 or session is None or self.phase is Phase.REACHING:
            return b""
        told = EMPTY
        if sentence and connect.wants_problems:
            told = Properties(values={REASON_STRING: sentence.encode()})
        if self.translation is not None:
            return self.translation.farewell(code, told)
        if session.disconnected:
            return b""
        packet = encode(Disconnect(code=code, properties=told), 5)
        return packet if len(packet) <= connect.packet_bytes_max else encode(Disconnect(code=code), 5)

    # -- who may be read, and when to look again

    @property
    def _is_read(self) -> bool:
        """Whether the device's side is read now."""
        return self.reads_device and not self._is_closing

    def _is_silent(self, now_s: float, factor: float, grace_s: float = 0.0) -> bool:
        """Whether the device has said nothing for so many times its keep-alive."""
        connect, session = self.connect, self.session
        if connect is None or session is None:
            return False
        return now_s - session.heard_s > factor * self._terms.keep_alive_of(connect, session) + grace_s

    def _out(self, todo: list[Instruction]) -> list[Instruction]:
        waiting, translation = self.waiting, self.translation
        is_asked = self.phase is Phase.REACHING and self.reaching is not None and self.reaching.is_asked
        reads_device = (
            self.phase is Phase.OPENING
            or is_asked
            or (
                self.phase is Phase.FLOWING
                and not self._broker_is_full
                and not self.gives_way
                and not (waiting is not None and waiting.is_full)
            )
        )
        if reads_device is not self.reads_device:
            self.reads_device = reads_device
            todo.append(Do.RESUME_DEVICE if reads_device else Do.PAUSE_DEVICE)
        reads_broker = not self._device_is_full and not (translation is not None and translation.is_full)
        if reads_broker is not self._reads_broker:
            self._reads_broker = reads_broker
            todo.append(Do.RESUME_BROKER if reads_broker else Do.PAUSE_BROKER)
        due_s = waiting.due_s if waiting is not None else None
        if due_s != self._said_due_s:
            self._said_due_s = due_s
            todo.append(WakeAt(due_s))
        return todo
