"""One connection, whatever happens to it in whatever order: what it asks for makes sense, and it ends.

The shell here performs nothing but keeps a book: it knows what a real one would have open, and holds the machine to it.
"""

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from connecting import terms
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
    TurnEnds,
    WakeAt,
)
from tidegate.gateway.connection.known import Phase
from tidegate.gateway.connection.machine import Connection
from tidegate.gateway.identity.rights import ANYTHING, EVERYTHING, Grant, Rights
from tidegate.gateway.identity.verdicts import REVOKED, WRONG, Accepted, Refused
from tidegate.model.routes import Broker
from tidegate.mqtt.frames import frame_size
from tidegate.mqtt.packets import Ack, Connack, Connect, Disconnect, Ping, Publish, Subscribe, Will, encode

BROKERS = (Broker(name="a", host="h", port=1), Broker(name="b", host="h", port=2, mqtt5=False))
OWN = Rights("d", Grant(("telemetry/{device}/#",), ("downlink/{device}/#",)))
VERDICTS: tuple[Accepted | Refused, ...] = (
    Accepted(name="d", method="derived", rights=OWN, generation=1),
    Accepted(name="app", method="file", rights=Rights("app", EVERYTHING), is_application=True),
    Accepted(name="d", method="broker", rights=ANYTHING, passes_credentials=True, keeps_identifier=True),
    WRONG,
)


def connects(version: int, will: bytes = b"") -> bytes:
    left = Will(topic=will, payload=b"gone", qos=1, retain=False) if will else None
    said = Connect(version=version, client_id=b"d", clean=True, keep_alive_s=30, user=b"d", password=b"w", will=left)
    return encode(said, version)


def said_by_device(version: int) -> st.SearchStrategy[bytes]:
    publishes = st.builds(
        lambda topic, qos: encode(Publish(topic=topic, payload=b"x", qos=qos, packet_id=7 if qos else 0), version),
        st.sampled_from([b"telemetry/d", b"telemetry/e", b"downlink/d"]),
        st.integers(0, 2),
    )
    others = st.sampled_from(
        [
            encode(Ping(), version),
            encode(Disconnect(), version),
            encode(Subscribe(packet_id=3, entries=((b"downlink/d", 1), (b"#", 0))), version),
            encode(Ack(kind=0x40, packet_id=9), version),
        ]
    )
    return publishes | others | st.binary(max_size=12)


def said_by_broker(version: int) -> st.SearchStrategy[bytes]:
    good = [
        encode(Connack(session_present=False, code=0), version),
        encode(Connack(session_present=True, code=0), version),
        encode(Connack(session_present=False, code=5 if version < 5 else 0x87), version),
        b"\x20\x02\x00\x01",  # how one of 3.1.1 refuses MQTT 5
        encode(Ack(kind=0x40, packet_id=7), version),
        encode(Publish(topic=b"downlink/d", payload=b"y", qos=1, packet_id=5), version),
        encode(Publish(topic=b"telemetry/e", payload=b"y"), version),
        b"\xd0\x00",
    ]
    return st.sampled_from(good) | st.binary(max_size=8)


class Book:
    """What a shell would have open, and what it was told."""

    def __init__(self, machine: Connection) -> None:
        self.machine = machine
        self.now_s = 100.0
        self.is_device_open = self.is_told_to_close = False
        self.has_broker = False
        self.flows = self.forgotten = 0
        self.wants: set[str] = set()
        self.to_device = b""
        self.wakes_s: float | None = None

    def serve(self, broker: Broker) -> None:
        """What is asked for comes, and the broker accepts."""
        machine, now_s = self.machine, self.now_s
        wanted = self.wants.pop() if self.wants else "answer" if self.has_broker else ""
        match wanted:
            case "Judge":
                self.perform(machine.judged(VERDICTS[0]))
            case "turn":
                self.perform(machine.turned(True, now_s))
            case "MakeWay":
                self.perform(machine.way_made(None))
            case "Choose":
                self.perform(machine.chosen(broker, broker.mqtt5, now_s))
            case "dial":
                self.has_broker = True
                self.perform(machine.reached())
            case "DeleteSession":
                self.perform(machine.asked(0, now_s))
            case "answer" if not self.flows:
                version = 4 if machine.translation is not None or machine.connect is None else machine.connect.version
                self.perform(machine.broker_data(encode(Connack(session_present=False, code=0), version), now_s))

    def perform(self, todo: list[Instruction]) -> None:
        for one in todo:
            self._do(one)

    def _do(self, one: Instruction) -> None:
        match one:
            case ToDevice(data):
                assert data
                assert not self.is_told_to_close, "nothing is said to a device that is closed"
                self.to_device += data
            case ToBroker(data):
                assert data
            case WakeAt(at_s):
                assert at_s is None or at_s >= self.now_s - 1e-6 or self.machine.phase is not Phase.OVER
                self.wakes_s = at_s
            case Judge() | MakeWay() | Choose() | DeleteSession() | AskOthers():
                self.wants = {type(one).__name__}
            case Do.AWAIT_TURN:
                self.wants = {"turn"}
            case Do.DIAL:
                assert self.machine.broker is not None
                self.wants = {"dial"}
            case Do.CLOSE_DEVICE:
                assert not self.is_told_to_close, "once is enough"
                self.is_told_to_close = True
            case Do.FLOW:
                self.flows += 1
                assert self.flows == 1
                assert self.machine.is_accepted
            case Do.FORGET:
                self.forgotten += 1
                assert self.forgotten == 1
            case Do.CLOSE_BROKER | Do.ABORT_BROKER:
                self.has_broker = False
            case TurnEnds():
                self.wants.discard("turn")


@st.composite
def histories(draw: st.DrawFn) -> tuple[int, list[tuple[str, object]]]:
    """A version, and what happens: bytes of both sides, answers of all kinds, failures, time."""
    version = draw(st.sampled_from([4, 5]))
    whole = connects(version, draw(st.sampled_from([b"", b"telemetry/d", b"telemetry/e"])))
    cut = draw(st.integers(0, len(whole)))
    verdict = draw(st.sampled_from(VERDICTS))
    opening: list[tuple[str, object]] = [("device", whole[:cut]), ("device", whole[cut:])]
    if draw(st.booleans()):
        opening.append(("judged", verdict))
    rest = st.one_of(
        st.tuples(st.just("device"), said_by_device(version)),
        st.tuples(st.just("broker"), said_by_broker(version)),
        st.tuples(st.just("broker"), said_by_broker(4)),
        st.tuples(st.just("judged"), st.sampled_from(VERDICTS)),
        st.tuples(st.just("turned"), st.booleans()),
        st.tuples(st.just("way_made"), st.none()),
        st.tuples(st.just("chosen"), st.sampled_from([*BROKERS, None])),
        st.tuples(st.just("reached"), st.none()),
        st.tuples(st.just("not_reached"), st.booleans()),
        st.tuples(st.just("asked"), st.sampled_from([0, 5, -1, None])),
        st.tuples(st.just("told"), st.booleans()),
        st.tuples(st.just("broker_lost"), st.none()),
        st.tuples(st.just("device_ended"), st.none()),
        st.tuples(st.just("device_full"), st.booleans()),
        st.tuples(st.just("broker_full"), st.booleans()),
        st.tuples(st.just("time"), st.sampled_from([0.1, 1.0, 6.0, 60.0])),
        st.tuples(st.just("look"), st.none()),
        st.tuples(st.just("give_way"), st.booleans()),
        st.tuples(st.just("judged_again"), st.sampled_from([*VERDICTS[:2], REVOKED])),
        st.tuples(st.just("dismiss"), st.none()),
    )
    # Mostly all goes well at first: what is asked for is there, and the broker accepts.
    times = draw(st.sampled_from([0, 3, 7, 7, 7, 7]))
    served: list[tuple[str, object]] = [("serve", draw(st.sampled_from(BROKERS)))] * times
    flowing = st.tuples(st.just("device"), said_by_device(version)) | st.tuples(st.just("broker"), said_by_broker(4))
    return version, [*opening, *served, *draw(st.lists(flowing, max_size=8)), *draw(st.lists(rest, max_size=15))]


def happen(book: Book, what: str, value: object) -> None:
    machine, now_s = book.machine, book.now_s
    calls: dict[str, Callable[[], list[Instruction]]] = {
        "device": lambda: machine.device_data(value, now_s) if value else [],  # type: ignore[arg-type]
        "broker": lambda: machine.broker_data(value, now_s),  # type: ignore[arg-type]
        "judged": lambda: machine.judged(value),  # type: ignore[arg-type]
        "turned": lambda: machine.turned(bool(value), now_s),
        "way_made": lambda: machine.way_made(None),
        "chosen": lambda: machine.chosen(value, None, now_s),  # type: ignore[arg-type]
        "reached": machine.reached,
        "not_reached": lambda: machine.not_reached(own_shortage=bool(value)),
        "asked": lambda: machine.asked(value, now_s),  # type: ignore[arg-type]
        "told": lambda: machine.told(bool(value), now_s),
        "broker_lost": lambda: machine.broker_lost(now_s),
        "device_ended": lambda: machine.device_ended(now_s),
        "device_full": lambda: machine.device_full(bool(value)),
        "broker_full": lambda: machine.broker_full(bool(value)),
        "look": lambda: machine.look(now_s),
        "give_way": lambda: machine.give_way(now_s, hears_broker=bool(value)),
        "judged_again": lambda: machine.judged_again(value, now_s),  # type: ignore[arg-type]
        "dismiss": machine.dismiss,
    }
    if what == "serve":
        book.serve(value)  # type: ignore[arg-type]
        return
    if what == "time":
        book.now_s += value  # type: ignore[operator]
        if book.wakes_s is not None and book.wakes_s <= book.now_s:
            book.wakes_s = None
            book.perform(machine.woken(book.now_s))
        book.perform(machine.look(book.now_s))
        return
    book.perform(calls[what]())


def are_whole(data: bytes) -> bool:
    """Whether these bytes are packets, and no part of one."""
    place = 0
    while place < len(data):
        header, size = frame_size(data, place)
        if header <= 0 or place + size > len(data):
            return False
        place += size
    return True


@settings(max_examples=400)
@given(histories())
def test_whatever_happens_a_connection_asks_for_what_makes_sense_and_ends(
    history: tuple[int, list[tuple[str, object]]],
) -> None:
    _, happens = history
    book = Book(Connection(terms(credits_max=1.0, credits_per_s=0.5, hold_s_max=5.0), 100.0))
    for what, value in happens:
        happen(book, what, value)
    machine = book.machine
    assert are_whole(book.to_device), "a device hears whole packets"
    book.perform(machine.device_lost(book.now_s))
    assert machine.phase in (Phase.LEAVING, Phase.OVER)
    book.now_s += 100.0
    while machine.phase is Phase.LEAVING:
        before_s = book.now_s
        book.perform(machine.woken(book.now_s))
        book.perform(machine.look(book.now_s))
        book.now_s += 10.0
        assert book.now_s - before_s < 1_000
    assert machine.phase is Phase.OVER
    assert book.forgotten == (1 if book.flows else book.forgotten)
    assert book.wakes_s is None or machine.woken(book.now_s) == [] or book.wakes_s is None
    for what, value in happens:
        before = book.to_device
        happen(book, what, value)
        assert book.to_device == before, "what is over says nothing any more"
    counters = machine._terms.counters
    assert counters.held == 0, "nothing counts as waiting that is gone"


@settings(max_examples=200)
@given(histories())
def test_nobody_who_was_refused_reaches_a_broker(history: tuple[int, list[tuple[str, object]]]) -> None:
    _, happens = history
    book = Book(Connection(terms(credits_max=1.0, credits_per_s=0.5, hold_s_max=5.0), 100.0))
    refused = False
    for what, value in happens:
        if what == "judged" and not refused and book.machine.phase is Phase.REACHING and book.machine.client is None:
            value, refused = WRONG, True  # noqa: PLW2901
        happen(book, what, value)
        if refused:
            assert book.flows == 0
            assert "dial" not in book.wants


@settings(max_examples=300)
@given(histories())
def test_a_device_hears_and_says_only_what_is_its_own(history: tuple[int, list[tuple[str, object]]]) -> None:
    """Whatever it tries: nothing of others' topics passes in either direction."""
    _, happens = history
    book = Book(Connection(terms(credits_max=1.0, credits_per_s=0.5, hold_s_max=5.0), 100.0))
    up: list[bytes] = []

    def watched(todo: list[Instruction]) -> None:
        up.extend(one.data for one in todo if isinstance(one, ToBroker))
        Book.perform(book, todo)

    book.perform = watched  # type: ignore[method-assign]
    for what, value in happens:
        if what in ("judged", "judged_again"):
            value = VERDICTS[0]  # noqa: PLW2901
        happen(book, what, value)
    spoken = b"".join(up)
    assert b"telemetry/e" not in spoken
    assert b"downlink/dx" not in spoken
    assert b"telemetry/ey" not in book.to_device
