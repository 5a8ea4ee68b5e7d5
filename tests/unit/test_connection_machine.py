"""One connection: what it is asked for and what it answers, step by step."""

import pytest

from connecting import terms
from tidegate.gateway.connection.instructions import (
    Choose,
    Do,
    Instruction,
    Judge,
    Learn5,
    MakeWay,
    ToBroker,
    ToDevice,
    TurnEnds,
)
from tidegate.gateway.connection.known import Phase
from tidegate.gateway.connection.machine import UNACKNOWLEDGED_S_MAX, Connection
from tidegate.gateway.identity.rights import AccessRules
from tidegate.gateway.identity.verdicts import REVOKED, WRONG, Accepted
from tidegate.model.identity import Access, Patterns
from tidegate.model.routes import Broker
from tidegate.mqtt.connect import parse_connect
from tidegate.mqtt.frames import frames_of
from tidegate.mqtt.packets import Connack, Connect, Disconnect, Publish, Subscribe, Will, encode, parse

A = Broker(name="a", host="h", port=1)
RULES = AccessRules(Access())
PUMP = Accepted(name="pump", method="derived", rights=RULES.rights_of_device("pump"), generation=1)
ACCEPTED = encode(Connack(session_present=False, code=0), 4)


def connect(version: int = 4, client_id: bytes = b"pump", will: bytes = b"") -> bytes:
    left = Will(topic=will, payload=b"gone", qos=0, retain=False) if will else None
    said = Connect(
        version=version, client_id=client_id, clean=True, keep_alive_s=60, user=b"u", password=b"p", will=left
    )
    return encode(said, version)


def told(todo: list[Instruction], kind: type) -> list[Instruction]:
    return [one for one in todo if isinstance(one, kind)]


def to_broker(todo: list[Instruction]) -> bytes:
    return b"".join(one.data for one in todo if isinstance(one, ToBroker))


def to_device(todo: list[Instruction]) -> bytes:
    return b"".join(one.data for one in todo if isinstance(one, ToDevice))


def reached(packet: bytes, client: Accepted = PUMP, *, early: bytes = b"", known_5: bool | None = None) -> Connection:
    """Up to the moment where the broker has the CONNECT."""
    machine = Connection(terms(), 0.0)
    machine.device_data(packet + early, 0.0)
    machine.judged(client)
    machine.turned(True, 0.0)
    machine.way_made(None)
    machine.chosen(A, known_5, 0.0)
    return machine


def flowing(packet: bytes, client: Accepted = PUMP) -> Connection:
    machine = reached(packet, client)
    machine.reached()
    machine.broker_data(encode(Connack(session_present=False, code=0), packet[8]), 0.0)
    assert machine.phase is Phase.FLOWING
    return machine


def test_the_way_to_a_broker_step_by_step() -> None:
    machine = Connection(terms(), 0.0)
    assert [type(one) if not isinstance(one, Do) else one for one in machine.device_data(connect(), 1.0)] == [
        Judge,
        Do.PAUSE_DEVICE,
    ]
    assert machine.judged(PUMP) == [Do.AWAIT_TURN]
    assert told(machine.turned(True, 2.0), MakeWay)
    assert machine.way_made(None) == [Choose(frozenset())]
    assert machine.chosen(A, None, 2.0) == [Do.DIAL]
    said = parse(0x10, to_broker(machine.reached())[2:], 4, properties_max=8)
    assert isinstance(said, Connect)
    assert (said.client_id, said.user, said.password) == (b"pump", b"gateway", b"own-word")
    assert machine.broker_data(ACCEPTED, 2.5) == [
        TurnEnds(0.5, True),
        Do.FLOW,  # before the client hears of it
        ToDevice(ACCEPTED),
        Do.RESUME_DEVICE,
    ]


def test_a_device_that_does_not_say_connect_in_time_is_closed() -> None:
    machine = Connection(terms(), 0.0)
    machine.device_data(connect()[:9], 9.0)
    assert machine.look(9.9) == []
    assert machine.look(10.0) == [Do.CLOSE_DEVICE]


def test_what_a_device_sends_too_early_is_passed_on_behind_its_connack() -> None:
    early = encode(Publish(topic=b"telemetry/pump", payload=b"1"), 4)
    machine = reached(connect(), early=early)
    machine.reached()
    todo = machine.broker_data(ACCEPTED, 0.0)
    assert (to_device(todo), to_broker(todo)) == (ACCEPTED, early)


def test_a_client_that_is_not_let_in_is_told_so_and_nobody_is_dialled() -> None:
    machine = Connection(terms(), 0.0)
    machine.device_data(connect(), 0.0)
    todo = machine.judged(WRONG)
    assert to_device(todo) == b"\x20\x02\x00\x04"
    assert Do.CLOSE_DEVICE in todo
    assert machine.turned(True, 0.0) == []


def test_a_will_on_a_topic_of_another_lets_nobody_in() -> None:
    machine = Connection(terms(), 0.0)
    machine.device_data(connect(will=b"telemetry/other"), 0.0)
    assert to_device(machine.judged(PUMP)) == b"\x20\x02\x00\x05"


def test_an_identifier_that_is_not_the_name_is_the_clients_own_all_the_same() -> None:
    machine = reached(connect(client_id=b"esp32"))
    said = parse(0x10, to_broker(machine.reached())[2:], 4, properties_max=8)
    assert isinstance(said, Connect)
    assert said.client_id == b"pump/esp32"


def test_a_broker_that_does_not_know_mqtt_5_is_spoken_to_in_3_1_1() -> None:
    machine = reached(connect(5))
    machine.reached()
    todo = machine.broker_data(b"\x20\x02\x00\x01", 1.0)
    assert told(todo, Learn5) == [Learn5(A, False)]
    assert Do.ABORT_BROKER in todo
    assert Do.DIAL in todo
    assert to_broker(machine.reached())[2:9] == b"\x00\x04MQTT\x04"
    assert to_device(machine.broker_data(ACCEPTED, 1.0))[0] == 0x20


def test_a_broker_that_hangs_up_is_not_ill_if_it_answers_others() -> None:
    machine = reached(connect())
    machine.reached()
    assert told(machine.broker_lost(1.0), Choose) == [Choose(frozenset({"a"}))]
    machine.chosen(None, None, 1.0)
    todo = machine.told(True, 1.0)
    assert Do.CLOSE_DEVICE in todo
    assert Do.LEAVE_LINE in todo


def test_nobody_who_waits_for_no_answer_keeps_its_turn() -> None:
    machine = reached(connect())
    machine.reached()
    assert machine.look(4.9) == []
    todo = machine.look(5.0)
    assert Do.ABORT_BROKER in todo
    assert machine.chosen(None, None, 5.0) == [TurnEnds(5.0, False), Do.AWAIT_TURN]


def test_who_is_revoked_goes_without_its_will() -> None:
    machine = flowing(connect(5, will=b"telemetry/pump"))
    todo = machine.judged_again(REVOKED, 1.0)
    assert to_broker(todo) == b"\xe0\x00"
    assert to_device(todo)[:1] == b"\xe0"
    assert Do.CLOSE_DEVICE in todo


def test_who_keeps_its_rights_keeps_its_connection_and_has_the_new_ones() -> None:
    machine = flowing(connect())
    narrow = AccessRules(Access(devices=Patterns(publishes=("other/{device}",), subscribes=())))
    found = Accepted(name="pump", method="derived", rights=narrow.rights_of_device("pump"), generation=1)
    assert machine.judged_again(found, 1.0) == []
    assert machine.session is not None
    packet = encode(Publish(topic=b"other/pump", payload=b"1"), 4)
    assert machine.session.from_device(packet, 1.0) == packet
    machine.session.from_device(encode(Publish(topic=b"telemetry/pump", payload=b"1"), 4), 1.0)
    assert machine.session.problem == "not its own topic"


def test_who_has_subscribed_to_what_it_may_no_longer_hear_goes() -> None:
    machine = flowing(connect())
    assert machine.session is not None
    machine.session.from_device(encode(Subscribe(packet_id=1, entries=((b"downlink/pump", 1),)), 4), 0.0)
    machine.session.from_broker(b"\x90\x03\x00\x01\x01")
    assert machine.session.subscribed.all() == [(b"downlink/pump", 1, ())]
    deaf = AccessRules(Access(devices=Patterns(subscribes=())))
    found = Accepted(name="pump", method="derived", rights=deaf.rights_of_device("pump"), generation=1)
    assert Do.CLOSE_DEVICE in machine.judged_again(found, 1.0)


def test_what_a_session_of_before_brings_that_may_not_be_heard_ends_the_connection_and_the_session() -> None:
    machine = flowing(connect())
    todo = machine.broker_data(encode(Publish(topic=b"telemetry/other", payload=b"secret"), 4), 1.0)
    assert b"secret" not in to_device(todo)
    assert Do.CLOSE_DEVICE in todo
    machine.device_lost(1.0)
    assert machine.deletion is not None
    assert machine.deletion.after_s == 0.0


def test_a_device_that_never_acknowledges_what_it_is_sent_is_not_kept() -> None:
    machine = flowing(connect())
    message = encode(Publish(topic=b"downlink/pump", payload=b"x", qos=1, packet_id=1), 4)
    machine.broker_data(message, 0.0)
    late = None
    for second in range(int(UNACKNOWLEDGED_S_MAX) + 3):
        machine.device_data(b"\xc0\x00", float(second))
        if Do.CLOSE_DEVICE in machine.look(float(second)):
            late = second
            break
    assert late is not None
    assert late > UNACKNOWLEDGED_S_MAX


def test_one_that_acknowledges_some_of_it_stays() -> None:
    machine = flowing(connect())
    for second in range(3 * int(UNACKNOWLEDGED_S_MAX)):
        if second % 60 == 0:
            for _ in range(2):
                machine.broker_data(encode(Publish(topic=b"downlink/pump", payload=b"x", qos=1, packet_id=1), 4), 0.0)
            machine.device_data(b"\x40\x02\x00\x01", float(second))
        machine.device_data(b"\xc0\x00", float(second))
        assert Do.CLOSE_DEVICE not in machine.look(float(second))


def test_passwords_are_forgotten_once_nobody_needs_them() -> None:
    passing = Accepted(name="u", method="broker", rights=PUMP.rights, passes_credentials=True, keeps_identifier=True)
    machine = flowing(connect(), passing)
    assert machine.reaching is not None
    assert machine.reaching.introduction is not None
    assert machine.reaching.introduction.packet == b""
    assert machine.reaching.introduction.said.password is None


# -- a session from a time of other rights


@pytest.mark.parametrize("speaks_5", [pytest.param(True, id="5 to 5"), pytest.param(False, id="5 on 3.1.1")])
def test_a_session_that_may_not_stay_is_deleted_and_its_client_hears_connack_before_it_goes(speaks_5: bool) -> None:
    machine = reached(connect(5), known_5=speaks_5)
    machine.reached()
    version = 5 if speaks_5 else 4
    secret = Publish(topic=b"downlink/other", payload=b"secret", qos=0)
    stored = encode(Connack(session_present=True, code=0), version) + encode(secret, version)
    said = to_device(machine.broker_data(stored, 0.0))
    heard = [parse(first, said[body:end], 5, properties_max=64) for first, body, end in frames_of(said)]
    assert [(type(one), one.code) for one in heard] == [(Connack, 0), (Disconnect, 0x87)]
    assert b"secret" not in said
    machine.device_lost(1.0)
    assert machine.deletion is not None
    assert machine.deletion.after_s == 0.0
    [(_, body, end)] = frames_of(machine.deletion.packet)
    deletion = parse_connect(machine.deletion.packet[body:end], 8)
    assert (deletion.version, deletion.client_id, deletion.clean) == (version, b"pump", True)


def on_5(client: Accepted = PUMP, **limits: object) -> Connection:
    """An MQTT 5 device on a broker of 3.1.1."""
    machine = Connection(terms(**limits), 0.0)
    machine.device_data(connect(5), 0.0)
    machine.judged(client)
    machine.turned(True, 0.0)
    machine.way_made(None)
    machine.chosen(A, False, 0.0)
    machine.reached()
    machine.broker_data(ACCEPTED, 0.0)
    assert machine.phase is Phase.FLOWING
    return machine


FOREIGN = encode(Publish(topic=b"telemetry/other", payload=b"1", qos=1, packet_id=7), 5)


def test_a_flood_of_publishes_that_are_refused_costs_credits_until_it_is_over() -> None:
    machine, refused = on_5(credits_max=400.0, credits_per_s=1.0), 0
    while Do.CLOSE_DEVICE not in machine.device_data(FOREIGN * 10, 1.0):
        refused += 10
        assert refused < 1_000
    assert refused == 100, "four credits each"


def test_refusals_that_a_device_does_not_read_are_not_kept_for_it() -> None:
    machine = on_5()
    machine.device_full(True)
    assert Do.CLOSE_DEVICE in machine.device_data(FOREIGN, 1.0)


def test_acknowledgements_of_nothing_cost_credits() -> None:
    machine = Connection(terms(credits_max=100.0, credits_per_s=0.001), 0.0)
    machine.device_data(connect(), 0.0)
    machine.judged(PUMP)
    machine.turned(True, 0.0)
    machine.way_made(None)
    machine.chosen(A, None, 0.0)
    machine.reached()
    machine.broker_data(ACCEPTED, 0.0)
    assert machine.session is not None
    for stray in (b"\x40\x02\x00\x09", b"\x62\x02\x00\x09", b"\x50\x02\x00\x08", b"\x70\x02\x00\x08"):
        machine.session.from_device(stray * 10, 1.0)
    assert not machine.session.problem
    machine.session.from_device(b"\x40\x02\x00\x09" * 100, 1.0)
    assert machine.session.problem == "quota exceeded"


def test_a_client_that_nobody_can_judge_in_time_is_told_to_come_again() -> None:
    machine = Connection(terms(), 0.0)
    machine.device_data(connect(), 0.0)
    assert machine.look(9.0) == []
    todo = machine.look(10.0)
    assert to_device(todo) == b"\x20\x02\x00\x03"
    assert Do.CLOSE_DEVICE in todo


def test_who_is_revoked_on_its_way_to_a_broker_is_told_so_in_connack() -> None:
    machine = reached(connect())
    assert to_device(machine.judged_again(REVOKED, 1.0)) == b"\x20\x02\x00\x05"


def test_who_uses_aliases_says_its_topics_anew_when_its_rights_change() -> None:
    machine = flowing(connect(5))
    assert machine.session is not None
    machine.session.from_device(encode(Publish(topic=b"", payload=b"1"), 5), 1.0)
    same = Accepted(name="pump", method="derived", rights=AccessRules(Access()).rights_of_device("pump"), generation=1)
    assert machine.judged_again(same, 1.0) == []
    narrow = AccessRules(Access(devices=Patterns(publishes=("telemetry/{device}",))))
    found = Accepted(name="pump", method="derived", rights=narrow.rights_of_device("pump"), generation=1)
    assert Do.CLOSE_DEVICE in machine.judged_again(found, 1.0)


def test_a_second_connack_and_a_message_without_an_identifier_are_the_brokers_fault() -> None:
    machine = flowing(connect())
    assert Do.CLOSE_DEVICE in machine.broker_data(ACCEPTED, 1.0)
    assert isinstance(flowing(connect()).broker_data(b"\x34\x03\x00\x01a", 1.0), list)


def test_a_broker_sees_no_identifier_that_it_may_not_like_and_no_two_become_one() -> None:
    seen = set()
    for client_id in (b"a.b", b"a%2Eb", b"a b", b"a*b", b"a>b", b"a/b", b"pump"):
        machine = reached(connect(client_id=client_id))
        said = parse(0x10, to_broker(machine.reached())[2:], 4, properties_max=8)
        assert isinstance(said, Connect)
        assert not set(said.client_id) & set(b" .*>")
        seen.add(said.client_id)
    assert len(seen) == 7


def test_a_client_of_the_broker_beside_others_has_identifiers_of_its_own() -> None:
    among_others = Accepted(name="u", method="broker", rights=PUMP.rights, passes_credentials=True)
    machine = reached(connect(client_id=b"pump"), among_others)
    said = parse(0x10, to_broker(machine.reached())[2:], 4, properties_max=8)
    assert isinstance(said, Connect)
    assert (said.client_id, said.password) == (b"u/pump", b"p")


def test_what_waits_on_a_topic_that_is_not_its_own_any_more_goes_nowhere() -> None:
    machine = Connection(terms(credits_max=1.0, credits_per_s=0.01), 0.0)
    machine.device_data(connect(), 0.0)
    machine.judged(PUMP)
    machine.turned(True, 0.0)
    machine.way_made(None)
    machine.chosen(A, None, 0.0)
    machine.reached()
    machine.broker_data(ACCEPTED, 0.0)
    machine.device_data(encode(Publish(topic=b"telemetry/pump/a", payload=b"1", qos=1, packet_id=1), 4) * 3, 1.0)
    assert machine.holds
    narrow = AccessRules(Access(devices=Patterns(publishes=("telemetry/{device}/b",))))
    found = Accepted(name="pump", method="derived", rights=narrow.rights_of_device("pump"), generation=1)
    assert Do.CLOSE_DEVICE in machine.judged_again(found, 1.0)
    assert b"telemetry/pump/a" not in to_broker(machine.device_lost(2.0))
