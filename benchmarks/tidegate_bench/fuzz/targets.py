"""What is fuzzed: bytes in, and an exception where anything comes out that must not.

A case is four bytes that choose (what is fuzzed, the version of MQTT, whether a device speaks, how the network cuts),
and the bytes themselves. Only a ``Violation`` may be raised, and here none is: targets catch theirs.
"""

import itertools
from collections.abc import Callable, Iterator
from types import ModuleType

import msgspec

from tidegate.control.limiting.credits import ClientCredits
from tidegate.gateway.connection.advising import AdviceInForce
from tidegate.gateway.connection.connect_plan import Limits, plan_connect
from tidegate.gateway.connection.holding import Hold
from tidegate.gateway.connection.noting import Noted, Noting
from tidegate.gateway.connection.opening import Opened, Opening, Refusal
from tidegate.gateway.connection.passing import Passing, TopicRules
from tidegate.gateway.connection.session import Session
from tidegate.gateway.connection.translation import Translation
from tidegate.gateway.identity.rights import ANYTHING
from tidegate.gateway.shared.classes import Classes
from tidegate.gateway.shared.counting import Counters
from tidegate.model.advice import Advice
from tidegate.model.classes import DEFAULT_CLASSES
from tidegate.mqtt import frames
from tidegate.mqtt.packets import CONNACK, DISCONNECT, PUBLISH, Connack, Connect, encode, parse, text_at
from tidegate.mqtt.violations import Violation
from tidegate_bench.fuzz.connections import RIGHTS, FuzzedConnection

HEADER_BYTES = 4
VERSIONS = (3, 4, 5)
PROPERTIES_MAX = 8
LIMITS = Limits(packet_bytes_max=1_000, topic_bytes_max=40, properties_max=PROPERTIES_MAX, keep_alive_s_max=60)
ADVICE = b'{"interval_s":2.0,"lifetime_s":10.0}'
FROM_BROKER = 0x80  # in the first byte of a piece of a conversation; the rest of it is how long the piece is
_ACCEPTED = {version: encode(Connack(session_present=False, code=0), version) for version in VERSIONS}
_SECONDS_PER_PIECE = 0.05


class Case(msgspec.Struct, frozen=True):
    version: int
    from_device: bool
    cut: int
    data: bytes

    def chunks(self) -> list[bytes]:
        """As the network may cut it."""
        return [self.data[place : place + self.cut] for place in range(0, len(self.data), self.cut)]

    def pieces(self) -> Iterator[tuple[bool, bytes]]:
        """A conversation: (whether the broker speaks, what is said)."""
        place = 0
        while place < len(self.data):
            head = self.data[place]
            end = place + 1 + (head & ~FROM_BROKER)
            yield bool(head & FROM_BROKER), self.data[place + 1 : end]
            place = end


def _whole(data: bytes) -> list[tuple[int, bytes]]:
    """(first byte, body) of each packet in bytes that have to be whole packets."""
    found, place = [], 0
    while place < len(data):
        header, size = frames.frame_size(data, place)
        assert header > 0, "no packet"
        found.append((data[place], data[place + header : place + size]))
        place += size
    assert place == len(data), "not whole packets"
    return found


def _scanned(module: ModuleType, case: Case, chunks: list[bytes]) -> tuple[bytes, int, int, str, int]:
    scanner = module.FrameScanner(200, 20, case.version, case.from_device, PROPERTIES_MAX, b"forbidden")
    passed, publishes, acknowledged = b"", 0, 0
    for chunk in chunks:
        data = scanner.scan(chunk)
        _whole(data)
        passed += data
        publishes += scanner.publishes
        acknowledged += scanner.acknowledged
    return passed, publishes, acknowledged, scanner.problem, scanner.code


def scanner_of(*modules: ModuleType) -> Callable[[Case], None]:
    """However it is cut, and by whichever form of the scanner, it is the same."""

    def scan(case: Case) -> None:
        outcomes = {
            _scanned(module, case, chunks)
            for module, chunks in itertools.product(modules, (case.chunks(), [case.data]))
        }
        assert len(outcomes) == 1, outcomes

    return scan


def opening(case: Case) -> None:
    """However it is cut, it is the same device or the same refusal, and that is a packet of the device's version."""
    cut, whole = Opening(200, PROPERTIES_MAX), Opening(200, PROPERTIES_MAX)
    outcome = None
    for chunk in case.chunks():
        outcome = cut.receive(chunk)
        if outcome is not None:
            break
    found = whole.receive(case.data)
    assert type(found) is type(outcome)
    if isinstance(found, Refusal) and found.answer:
        ((first, body),) = _whole(found.answer)
        answer = parse(first, body, 5 if len(body) > 2 else 4, properties_max=1)
        assert first == CONNACK
        assert isinstance(answer, Connack)
        assert answer.code
    if isinstance(found, Opened) and isinstance(outcome, Opened):
        assert (found.said, found.packet) == (outcome.said, outcome.packet)
        assert found.rest.startswith(outcome.rest)
        assert Opening(2_000, PROPERTIES_MAX).receive(encode(found.said, found.said.version)) is not None


def packet(case: Case) -> None:
    """What can be read is written and read again."""
    if not case.data:
        return
    try:
        found = parse(case.data[0], case.data[1:], case.version, properties_max=PROPERTIES_MAX)
    except Violation:
        return
    version = found.version if isinstance(found, Connect) else case.version
    ((first, body),) = _whole(encode(found, version))
    assert parse(first, body, version, properties_max=PROPERTIES_MAX) == found


def translation(case: Case) -> None:
    """Whatever a device says, the broker hears 3.1.1; and a device hears MQTT 5 as long as the broker speaks 3.1.1."""
    connect = Connect(version=5, client_id=b"d", clean=True, keep_alive_s=30)
    between = Translation(plan_connect(connect, assigned=b"", limits=LIMITS), LIMITS, lambda: ADVICE)
    _hear(between.wrap(_ACCEPTED[4]), 5)
    is_sound = True  # the broker
    for by_broker, said in case.pieces():
        if by_broker:
            is_sound = is_sound and _is_sound(said)
            down = between.wrap(said)
        else:
            down = b""
            _hear(between.received(said), 4)
        _hear(between.answer_upstream(), 4)
        _hear(down + between.answer(), 5, strictly=is_sound)
        if between.problem:
            break
    _hear(between.farewell(between.code or 0x8B), 5)


def _hear(data: bytes, version: int, *, strictly: bool = True) -> None:
    for first, body in _whole(data):
        if strictly:
            parse(first, body, version, properties_max=10_000)


def _is_sound(said: bytes) -> bool:
    """Whether a broker says nothing but whole and valid packets."""
    try:
        _hear(said, 4)
    except (Violation, AssertionError):
        return False
    return True


def session(case: Case) -> None:
    """Whatever is said on either side, whole packets pass, and nothing comes to wait but publishes and a farewell."""
    between, now_s = _session(case.version), 0.0
    between.from_broker(_ACCEPTED[case.version])
    for by_broker, said in case.pieces():
        now_s += _SECONDS_PER_PIECE
        _whole(between.from_broker(said) if by_broker else between.from_device(said, now_s))
        assert {first & 0xF0 for first, _ in _whole(between.released(now_s))} <= {PUBLISH, DISCONNECT}
        _whole(between.take_answer())
        if between.problem:
            break
    between.leave()


def _session(version: int) -> Session:
    counters = Counters()
    advice = AdviceInForce(lambda: 0.0)
    advice.renew(msgspec.json.decode(ADVICE, type=Advice), 1)
    classes = Classes(DEFAULT_CLASSES, counters)
    hold = Hold(ClientCredits(4.0, 20.0, 0.0), bytes_max=500, hold_s_max=1.0, keep_alive_s=30)
    rules = TopicRules(DEFAULT_CLASSES)
    passing = Passing(hold, rules, classes, advice, counters, enforces=True, version=version, tells_quota=False)
    news_bytes_max = 200 if version == 5 else 0
    return Session(
        version, LIMITS, advice, passing, ANYTHING, news_bytes_max=news_bytes_max, noting=Noting(Noted(), version)
    )


def connection(case: Case) -> None:
    """Whatever is said on either side of a whole connection, and whatever goes wrong beside it."""
    flaws, conversation = (case.data[0], case.data[1:]) if case.data else (0, b"")
    whole = FuzzedConnection(case.version, flaws)
    for by_broker, said in Case(case.version, case.from_device, case.cut, conversation).pieces():
        whole.piece(by_broker, said)
    _whole(whole.said)
    for first, body in _whole(whole.passed):
        if first & 0xF0 == PUBLISH:
            topic = text_at(body, 0) or b""
            assert not topic or RIGHTS.may_publish(topic), "another's topic"
    whole.end()


def targets(*scanners: ModuleType) -> dict[str, Callable[[Case], None]]:
    """By their names, in the order that the first byte of a case counts them. ``scanners`` have to agree."""
    return {
        "scanner": scanner_of(*scanners),
        "opening": opening,
        "packets": packet,
        "translation": translation,
        "session": session,
        "connection": connection,
    }


def case_of(data: bytes, names: list[str]) -> tuple[str, Case] | None:
    """(target, case); None where there are too few bytes to choose by."""
    if len(data) < HEADER_BYTES:
        return None
    name, version = names[data[0] % len(names)], VERSIONS[data[1] % len(VERSIONS)]
    return name, Case(version, bool(data[2] & 1), 1 + data[3], data[HEADER_BYTES:])
