"""What the processes of a gateway share: rows of counters, names of brokers, the directory of clients."""

import os
import random
import re
from pathlib import Path

import msgspec
import pytest
from nowhere import NOWHERE

from tidegate import gateway
from tidegate.gateway.processes.process import PAUSE_S_MAX, PROVEN_S, pause_s
from tidegate.gateway.processes.supervisor import Supervisor
from tidegate.gateway.routing import Router
from tidegate.gateway.settings import GatewaySettings, TopicLimit
from tidegate.gateway.shared import layout
from tidegate.gateway.shared.brokers import OTHERS
from tidegate.gateway.shared.classes import Classes
from tidegate.gateway.shared.counting import Counters
from tidegate.gateway.shared.directory import NOBODY, Known
from tidegate.gateway.shared.memory import Shared
from tidegate.gateway.shared.reasons import OTHER, REASONS
from tidegate.gateway.shared.row import MOST_HELD_MAX
from tidegate.gateway.shared.summing import state_of
from tidegate.model.classes import DEFAULT_CLASSES
from tidegate.model.errors import TidegateError, UserError
from tidegate.model.ledger import LedgerCounts
from tidegate.model.observations import ClassState, GatewayState, HeldClient
from tidegate.model.routes import Routes


def state(shared: Shared) -> GatewayState:
    names = [one.name for one in DEFAULT_CLASSES]
    return state_of(shared, name="g", address="h:1", measured_at_s=1.0, class_names=names)


def held(name: str, waiting_s: float, reason: str = "its own rate") -> HeldClient:
    return HeldClient(client_id=name, reason=reason, publishes=3, waiting_s=waiting_s)


def test_a_process_that_opens_the_memory_by_its_number_sees_the_same() -> None:
    shared = Shared.create(processes=2, buckets=1, clients_max=100)
    opened = Shared.from_fd(os.dup(shared.fd))
    counters = Counters(opened.rows[1].cells)
    counters.publishes += 7
    counters.tell()
    opened.unattended[3] = 1
    assert (shared.rows[1].cells[layout.PUBLISHES], shared.unattended[3]) == (7, 1)
    assert shared.directory.digest("d") == opened.directory.digest("d")
    assert Shared.create().directory.digest("d") != shared.directory.digest("d"), "each gateway has its own secret"


def test_a_memory_of_another_version_is_refused() -> None:
    shared = Shared.create()
    os.pwrite(shared.fd, (layout.LAYOUT + 1).to_bytes(8, "little"), 0)
    with pytest.raises(TidegateError, match="different versions"):
        Shared.from_fd(os.dup(shared.fd))


def test_every_counter_and_gauge_is_summed_under_its_name() -> None:
    shared = Shared.create(processes=2)
    for row in shared.rows:
        counters = Counters(row.cells)
        for name in ("publishes", "acknowledged", "advised", "bytes_in", "bytes_out", "held_total"):
            setattr(counters, name, getattr(counters, name) + len(name))
        counters.connections, counters.held, counters.admitting = 5, 6, 7
        counters.refuse("not MQTT")
        counters.refuse("words of a client")
        counters.drop("expired", 3)
        counters.version("5 on 3.1.1", 1)
        classes = Classes(DEFAULT_CLASSES, counters)
        siren = classes.of(b"telemetry/siren/alarm")
        siren.devices += 1
        siren.publishes += 2
        counters.tell()
        classes.tell()
    shared.rows[1].cells[layout.OVERLOAD] = 4
    found = state(shared)
    assert (found.publishes, found.acknowledged, found.advised) == (18, 24, 14)
    assert (found.bytes_in, found.bytes_out, found.held_total) == (16, 18, 20)
    assert (found.connections, found.held, found.admitting, found.overload) == (10, 12, 14, 4)
    assert (found.refused, found.dropped) == ({"not MQTT": 2, OTHER: 2}, {"expired": 6})
    assert (found.versions, found.classes) == ({"5 on 3.1.1": 2}, {"alarm": ClassState(devices=2, publishes=4)})


def test_what_a_process_counted_outlives_it_once_and_what_it_had_does_not() -> None:
    shared = Shared.create(processes=2)
    shared.begin(0, process=8)
    for row, count in zip(shared.rows, (3, 4), strict=True):
        counters = Counters(row.cells)
        counters.publishes = counters.connections = counters.held = count
        counters.tell()
        counters.refuse("not MQTT")
        row.tell_held([held("d", 2.0)])
    shared.brokers(0).change("a", 3)
    before = state(shared)
    shared.fold(0)
    after = state(shared)
    assert (after.publishes, after.refused) == (before.publishes, before.refused) == (7, {"not MQTT": 2})
    assert (after.connections, after.held, after.brokers, len(after.most_held)) == (4, 4, {}, 1)
    assert shared.slot_of(8) is None
    shared.fold(0)
    assert state(shared).publishes == 7, "a row that is free has nothing to give"


def test_what_a_process_noted_and_did_not_report_before_it_went_is_unwatched() -> None:
    shared = Shared.create(processes=2)
    for row in shared.rows:
        counters = Counters(row.cells)
        counters.tell_noted(10, 2)
        counters.tell_reported(7, 1)
    assert state(shared).ledger == LedgerCounts(noted=20, reported=14, nameless=4, unwatched=2)
    shared.fold(0)
    assert state(shared).ledger == LedgerCounts(noted=20, reported=14, nameless=4, unwatched=5)


def test_every_word_that_is_counted_has_a_place() -> None:
    calls = r"(?:Violation\(\w+, |Refusal\(|_fail\(|\bend\(|refuse\(|drop\(|\.problem = )\"([^\"]+)\""
    constants = r"^(?:BAD|OLD|BROKEN|FAILED|NO_CERTIFICATE|TOO_LARGE|TOO_LONG|_BROKEN) = \"([^\"]+)\""
    files = [path.read_text() for path in Path(gateway.__file__).parent.rglob("*.py")]
    words = {word for text in files for word in re.findall(f"{calls}|{constants}", text, re.MULTILINE)}
    found = {word for pair in words for word in pair if word}
    assert len(found) > 20
    assert found <= set(REASONS)


def test_reasons_are_told_apart() -> None:
    assert len(set(REASONS)) == len(REASONS)
    for reason in REASONS:
        counters = Counters()
        counters.refuse(reason)
        counters.drop(reason)
        places = layout.REFUSED + REASONS.index(reason), layout.DROPPED + REASONS.index(reason)
        assert [place for place in range(layout.CELLS) if counters.cells[place]] == list(places)


def test_brokers_are_counted_by_name_and_those_beyond_the_room_together() -> None:
    shared = Shared.create(processes=2)
    left, right, room = shared.brokers(0), shared.brokers(1), layout.BROKERS_MAX - 1
    for number in range(room + 3):
        (left if number % 2 else right).change(f"broker-{number}", 1)
    left.change("broker-0", 1)
    assert left.total() == right.total() == {"broker-0": 2, **{f"broker-{n}": 1 for n in range(1, room)}, OTHERS: 3}
    right.change("broker-0", -1)
    left.change("broker-0", -1)
    assert "broker-0" not in left.total()


def test_long_names_of_brokers_that_begin_alike_are_two() -> None:
    loads = Shared.create().brokers()
    loads.change("b" * 300 + "1", 1)
    loads.change("b" * 300 + "2", 1)
    assert len(loads._names) == 2


def test_those_who_have_waited_longest_are_told_whoever_holds_them() -> None:
    shared = Shared.create(processes=2)
    for slot, row in enumerate(shared.rows):
        row.tell_held([held(f"d{slot}-{number}", number) for number in range(50)], {"its own rate": 50, "a/#": slot})
    found = state(shared)
    assert [client.waiting_s for client in found.most_held] == [49, 49, 48, 48, 47, 47, 46, 46, 45, 45]
    assert found.held_clients == {"its own rate": 100, "a/#": 1}
    shared.rows[0].tell_held([])
    assert {client.client_id[:3] for client in state(shared).most_held} == {"d1-"}


def test_what_clients_are_called_cannot_fill_the_room() -> None:
    row = Shared.create().rows[0]
    row.tell_held(
        [held("\0" * 65_535, number, "\1" * 300) for number in range(20)], {"r" * 200 + str(n): 1 for n in range(99)}
    )
    found = row.held()
    assert len(found.most) < MOST_HELD_MAX
    assert len(found.clients) < 99
    row.tell_held([held("d" * 200, 1.0)])
    assert row.held().most[0].client_id == "d" * 63 + "…"


def arrive(shared: Shared, client: str, process: int, now_s: float, credentials: bytes = b"c" * 16) -> None:
    directory = shared.directory
    directory.arrive(
        directory.digest(client), process=process, broker=b"broker-1", credentials=credentials, now_s=now_s
    )


def test_a_client_is_found_where_it_is_with_what_it_left() -> None:
    shared = Shared.create(processes=2, clients_max=100)
    for slot in (0, 1):
        shared.begin(slot, process=11 + slot)
    directory, digest = shared.directory, shared.directory.digest("d")
    assert directory.find(digest) is None
    arrive(shared, "d", 11, 1.0)
    found = directory.find(digest)
    assert found is not None
    assert (found.process, found.broker, found.credentials, found.credits) == (11, b"broker-1", b"c" * 16, None)
    assert shared.slot_of(found.process) == 0
    arrive(shared, "d", 12, 2.0)
    directory.leave(digest, process=11, credits_left=(0.0, 0.0, 0.0), now_s=3.0)
    found = directory.find(digest)
    assert found is not None
    assert (found.process, found.credits) == (12, None), "it is on another process by now"
    directory.leave(digest, process=12, credits_left=(0.5, 2.0, 4.0), now_s=4.0)
    arrive(shared, "d", 11, 9.0)
    found = directory.find(digest)
    assert found is not None
    assert (found.process, found.credits, found.seen_at_s) == (11, (0.5, 2.0, 4.0), 9.0)
    shared.fold(0)
    assert shared.slot_of(found.process) is None, "who died has no clients"


def test_who_is_connected_is_forgotten_last() -> None:
    shared = Shared.create(processes=1, clients_max=3)
    shared.begin(0, process=1)
    for number, client in enumerate(("connected", "left", "dead")):
        arrive(shared, client, 9 if client == "dead" else 1, float(number))
    digest = shared.directory.digest
    shared.directory.leave(digest("left"), process=1, credits_left=None, now_s=50.0)

    def known() -> set[str]:
        return {one for one in ("connected", "left", "dead", "new", "newer") if shared.directory.find(digest(one))}

    arrive(shared, "new", 1, 60.0)
    assert known() == {"connected", "left", "new"}, "a process that died has nobody"
    arrive(shared, "newer", 1, 61.0)
    assert known() == {"connected", "new", "newer"}


@pytest.mark.parametrize(
    ("lived_s", "before_s", "expected_s"),
    [
        pytest.param(0.1, None, 0.0, id="the first time at once"),
        pytest.param(0.1, 0.0, 0.25, id="the second time soon"),
        pytest.param(0.1, 0.25, 0.5, id="then twice as long"),
        pytest.param(0.1, 4.0, PAUSE_S_MAX, id="and never longer"),
        pytest.param(PROVEN_S, PAUSE_S_MAX, 0.0, id="one that lived long enough is replaced at once"),
    ],
)
def test_how_soon_a_process_is_replaced(lived_s: float, before_s: float | None, expected_s: float) -> None:
    assert pause_s(lived_s, before_s) == expected_s


def test_a_limit_on_what_is_no_filter_is_refused_before_anything_starts() -> None:
    limits = (TopicLimit(topics=("a/#",), rate_per_s=1), TopicLimit(topics=("a/#/b",), rate_per_s=1))
    with pytest.raises(UserError, match="setting limits, number 2, has the topic filter 'a/#/b': # has to be its last"):
        Supervisor(NOWHERE, GatewaySettings(limits=limits), print)


def test_what_is_known_is_changed_in_one_go_or_not_at_all() -> None:
    directory = Shared.create().directory
    digest = directory.digest("d")
    assert directory.settle(digest, lambda known: known) is None
    assert directory.find(digest) is None

    def spend(known: Known | None) -> Known:
        left = (10.0, 3.0, 0.0) if known is None or known.credits is None else known.credits
        return msgspec.structs.replace(known or NOBODY, credits=(left[0] - 1, *left[1:]), seen_at_s=5.0)

    for credits_left in (9.0, 8.0):
        found = directory.settle(digest, spend)
        assert found == directory.find(digest)
        assert found is not None
        assert found.credits == (credits_left, 3.0, 0.0)
    assert directory.settle(digest, lambda _: None) == directory.find(digest)


def test_who_is_counted_by_one_process_keeps_its_credits_whoever_counts_it() -> None:
    shared = Shared.create(processes=2)
    routers = []
    for slot in range(2):
        shared.begin(slot, process=slot + 1)
        routers.append(Router(Routes(brokers=()), shared, random.Random(0), slot=slot))
    one, other = routers
    credits_left = (7.0, 2.0, 1.0)
    one.account("d", lambda known: msgspec.structs.replace(known or NOBODY, credits=credits_left))
    assert one.claim("d")
    assert one.claim("d")
    assert not other.claim("d")
    other.release("d")
    assert not other.claim("d"), "only who counts it lets it go"
    one.release("d")
    assert other.claim("d")
    found = one.account("d", lambda _: None)
    assert found is not None
    assert (found.credits, found.process) == (credits_left, 2)
