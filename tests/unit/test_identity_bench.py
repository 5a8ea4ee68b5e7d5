"""The benchmark of identity: its judge on outcomes that are right and on every way in which they can be wrong, and the
arithmetic of its checks."""

import json
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from tidegate.report.checks import Check
from tidegate_bench.identity import cells as names
from tidegate_bench.identity.cells import CASES, METHODS, MOSQUITTO, NATS, TRANSPORTS, Cell, cells
from tidegate_bench.identity.client import Message, told_of
from tidegate_bench.identity.costs import COST, DERIVED, PASSED_ON, cost_checks, cost_row
from tidegate_bench.identity.dead_service import CALM, DEAD, SERVICE, service_row
from tidegate_bench.identity.judging import (
    AS_EXPECTED,
    HEARD,
    LOG,
    NOT_APPLICABLE,
    RETAINED,
    WRONGLY_ACCEPTED,
    WRONGLY_REFUSED,
    Arrival,
    Seen,
    judged,
    matrix_checks,
    stored_row,
)
from tidegate_bench.identity.oracle import expected, may_speak
from tidegate_bench.identity.readings import arrivals_of, reading
from tidegate_bench.identity.revoking import REVOKING, revoking_checks
from tidegate_bench.identity.service import Account, AccountService

ALL = cells()
PLAYED = [cell for cell in ALL if not cell.not_applicable]
REFUSED = [cell for cell in PLAYED if not expected(cell).is_allowed]
ALLOWED = [cell for cell in PLAYED if expected(cell).is_allowed]


def find(method: str, transport: str, case: str, broker: str | None = None) -> Cell:
    return next(
        cell
        for cell in ALL
        if (cell.method, cell.transport.name, cell.case) == (method, transport, case)
        and cell.broker == (broker or cell.broker)
    )


def as_it_must_be(cell: Cell) -> Seen:
    must = expected(cell)
    return Seen(told=(*must.told, "")[0], all_granted=must.is_allowed, any_granted=must.is_allowed)


def arrived(cell: Cell, device: str, *places: str, sender: str | None = None) -> list[Arrival]:
    return [
        Arrival(
            where=where,
            broker=cell.broker,
            topic=f"telemetry/{device}",
            sender=sender or cell.sender,
            cell=cell.number,
        )
        for where in places
    ]


def all_arrived(cell: Cell) -> list[Arrival]:
    """What an allowed cell publishes, wherever it has to get to."""
    device = cell.victim if cell.case == names.SPEAKS_FOR else cell.client
    return arrived(cell, device, *((HEARD, LOG) if cell.broker == NATS else (HEARD,)))


SEEN = {cell.number: as_it_must_be(cell) for cell in PLAYED}
ARRIVALS = [arrival for cell in ALLOWED for arrival in all_arrived(cell)]


def checked(seen: dict[int, Seen], arrivals: Sequence[Arrival]) -> dict[str, Check]:
    rows = [*(one.row() for one in judged(ALL, seen, arrivals)), stored_row(ALL, arrivals)]
    return {check.name: check for check in matrix_checks(rows)}


# -- the cells


def test_every_method_meets_every_transport_and_every_case() -> None:
    wanted = {(method, transport.name, case) for method in METHODS for transport in TRANSPORTS for case in CASES}
    assert {(cell.method, cell.transport.name, cell.case) for cell in ALL} == wanted
    assert {cell.broker for cell in PLAYED if cell.five and cell.method != "broker"} == {NATS, MOSQUITTO}
    assert len({cell.number for cell in ALL}) == len(ALL)


@pytest.mark.parametrize(
    ("method", "transport", "case", "why"),
    [
        ("certificate", "MQTT 5", names.RIGHT, "a certificate is shown in TLS, and here is none"),
        ("derived", "TLS, MQTT 3.1.1", names.ALIAS, "MQTT 3.1.1 knows no topic aliases"),
        ("jwt", "HTTP ingest", names.WILL, "HTTP ingest knows no wills"),
        ("file", "MQTT 5", names.EXPIRED, "a line of a password file has no end"),
        ("broker", "MQTT 5", names.OWN_PORT, "with this method the broker is to know its clients"),
        ("derived", "MQTT 3.1.1", names.OWN_PORT, ""),
        ("derived", "MQTT 3.1.1", names.EXPIRED, ""),
        ("certificate", "HTTP ingest", names.RIGHT, ""),
    ],
)
def test_a_cell_that_cannot_exist_says_why(method: str, transport: str, case: str, why: str) -> None:
    assert find(method, transport, case).not_applicable == why


# -- the oracle


@pytest.mark.parametrize(
    ("method", "transport", "case", "told"),
    [
        ("derived", "MQTT 3.1.1", names.WRONG, ("CONNACK 4", "CONNACK 5")),
        ("jwt", "WebSocket, MQTT 5", names.EXPIRED, ("CONNACK 0x86", "CONNACK 0x87")),
        ("certificate", "TLS, MQTT 5", names.EXPIRED, ("closed before CONNACK",)),
        ("certificate", "TLS, MQTT 5", names.ANOTHERS_NAME, ("PUBACK 0x87",)),
        ("file", "MQTT 3.1.1", names.PUBLISH, ("closed",)),
        ("file", "MQTT 5", names.WILL, ("CONNACK 0x87",)),
        ("http", "TLS, MQTT 3.1.1", names.WILDCARD, ("SUBACK 0x80",)),
        ("http", "HTTP ingest", names.PUBLISH, ("HTTP 403",)),
        ("broker", "HTTP ingest", names.RIGHT, ("HTTP 401", "HTTP 403")),
    ],
)
def test_what_is_refused_is_told_in_the_words_of_the_transport(
    method: str, transport: str, case: str, told: tuple[str, ...]
) -> None:
    must = expected(find(method, transport, case))
    assert (must.is_allowed, must.told) == (False, told)


def test_only_what_is_right_is_allowed() -> None:
    assert {cell.case for cell in ALLOWED} == {names.RIGHT, names.SPEAKS_FOR}


@pytest.mark.parametrize(
    ("sender", "device", "may"),
    [
        ("client-0001", "client-0001", True),
        ("client-0001", "client-0002", False),
        ("edge-jwt", "spoken-0001", True),
        ("edge-jwt", "victim-0001", False),
        ("client-0001", "spoken-0001", False),
        (names.IMPOSTOR, "client-0001", False),
    ],
)
def test_who_may_stand_under_whose_topic(sender: str, device: str, may: bool) -> None:
    assert may_speak(sender, device) == may


# -- the judge


def test_outcomes_as_they_must_be_pass() -> None:
    found = checked(SEEN, ARRIVALS)
    assert all(check.holds for check in found.values()), found
    assert found["cells_played"].value == len(PLAYED)


def test_whatever_is_granted_of_what_must_be_refused_is_found_in_every_cell() -> None:
    granted = {cell.number: msgspec.structs.replace(SEEN[cell.number], any_granted=True) for cell in REFUSED}
    assert {one.verdict for one in judged(REFUSED, granted, [])} == {WRONGLY_ACCEPTED}


@pytest.mark.parametrize("where", [HEARD, LOG, RETAINED])
def test_a_forgery_that_was_refused_and_arrived_all_the_same_is_found(where: str) -> None:
    cell = find("derived", "MQTT 5", names.PUBLISH, NATS)
    found = checked(SEEN, [*ARRIVALS, *arrived(cell, cell.victim, where)])
    assert found["wrongly_accepted"].value == 1
    assert found["forged_readings_stored"].value == (where == LOG)


def test_a_spy_that_hears_something_is_found_whatever_it_was_told() -> None:
    cell = find("derived", "MQTT 5", names.SHARED)
    heard = msgspec.structs.replace(SEEN[cell.number], heard=1)
    assert checked({**SEEN, cell.number: heard}, ARRIVALS)["wrongly_accepted"].value == 1


def test_somebody_who_gets_in_without_proof_forges_even_under_its_own_topic() -> None:
    cell = find("http", "MQTT 3.1.1", names.EXPIRED)
    found = checked(SEEN, [*ARRIVALS, *arrived(cell, cell.client, HEARD, LOG)])
    assert (found["wrongly_accepted"].value, found["forged_readings_stored"].value) == (1, 1)


def test_what_lands_under_its_own_topic_by_an_alias_is_no_forgery() -> None:
    cell = find("derived", "MQTT 5", names.ALIAS, NATS)
    found = checked(SEEN, [*ARRIVALS, *arrived(cell, cell.client, HEARD, LOG)])
    assert all(check.holds for check in found.values())


def test_whatever_is_refused_of_what_must_be_granted_is_found_in_every_cell() -> None:
    refused = {cell.number: Seen(told="CONNACK 5") for cell in ALLOWED}
    assert {one.verdict for one in judged(ALLOWED, refused, ARRIVALS)} == {WRONGLY_REFUSED}


@pytest.mark.parametrize("lost", [HEARD, LOG])
def test_an_acknowledged_reading_that_does_not_arrive_is_found(lost: str) -> None:
    cell = find("file", "MQTT 3.1.1", names.RIGHT)
    kept = [one for one in ARRIVALS if (one.cell, one.where) != (cell.number, lost)]
    found = checked(SEEN, kept)
    assert found["wrongly_refused"].value == 1
    assert found["own_readings_missing"].value == (lost == LOG)


def test_a_cell_that_nobody_played_is_found() -> None:
    left_out = {number: seen for number, seen in SEEN.items() if number != REFUSED[0].number}
    assert checked(left_out, ARRIVALS)["wrongly_refused"].value == 1


def test_zero_forgeries_in_an_empty_log_do_not_pass() -> None:
    found = checked(SEEN, [one for one in ARRIVALS if one.where != LOG])
    assert found["forged_readings_stored"].holds
    assert not found["readings_stored"].holds
    assert not found["own_readings_missing"].holds


def test_a_refusal_in_other_words_is_counted_apart() -> None:
    cell = find("derived", "MQTT 5", names.SUBSCRIBE)
    found = checked({**SEEN, cell.number: Seen(told="SUBACK 0x80")}, ARRIVALS)
    assert (found["refusals_told_otherwise"].value, found["wrongly_accepted"].value) == (1, 0)


def test_rows_say_what_was_expected_and_told_or_why_not_played() -> None:
    rows = {row["cell"]: row for row in (one.row() for one in judged(ALL, SEEN, ARRIVALS))}
    refused = rows[find("derived", "MQTT 5", names.PUBLISH, NATS).number]
    assert (refused["verdict"], refused["expected"]) == (AS_EXPECTED, "refused: PUBACK 0x87")
    left_out = rows[find("certificate", "MQTT 5", names.RIGHT).number]
    assert (left_out["verdict"], bool(left_out["why"])) == (NOT_APPLICABLE, True)


# -- what was seen, in words


@pytest.mark.parametrize(
    ("kind", "codes", "words", "granted"),
    [
        ("PUBACK", (0x00,), "PUBACK 0x00", (True, True)),
        ("PUBACK", (0x87,), "PUBACK 0x87", (False, False)),
        ("SUBACK", (0x87, 0x87), "SUBACK 0x87", (False, False)),
        ("SUBACK", (0x01, 0x87), "SUBACK 0x01 0x87", (False, True)),
        ("closed", (), "closed", (False, False)),
        ("closed", (0x87,), "DISCONNECT 0x87", (False, False)),
        ("no answer", (), "no answer", (False, False)),
    ],
)
def test_answers_in_words(kind: str, codes: tuple[int, ...], words: str, granted: tuple[bool, bool]) -> None:
    assert told_of(kind, codes) == (words, *granted)


def test_a_reading_says_who_sent_it_and_strangers_are_left_out() -> None:
    cell = find("derived", "MQTT 3.1.1", names.WRONG)
    own = Message(f"telemetry/{cell.client}", reading(cell), retained=False)
    kept = Message("downlink/x", reading(cell, 1), retained=True)
    found = list(arrivals_of(NATS, [own, kept, Message("downlink/x", b"for somebody", retained=False)]))
    assert [(one.where, one.sender, one.is_forged) for one in found] == [
        (HEARD, names.IMPOSTOR, True),
        (RETAINED, names.IMPOSTOR, True),
    ]
    assert json.loads(reading(cell))["seq"] != json.loads(reading(cell, 1))["seq"]


@pytest.mark.parametrize(
    ("user", "password", "status", "said"),
    [
        ("nobody", "x", 404, {}),
        ("pump", "wrong", 401, {}),
        ("pump", "right", 200, {"name": "pump"}),
        ("old", "right", 200, {"name": "old", "expires_s": 1.0}),
    ],
)
def test_the_service_answers(user: str, password: str, status: int, said: dict[str, Any]) -> None:
    with AccountService() as service:
        service.accounts = {"pump": Account("right"), "old": Account("right", expires_s=1.0)}
        assert service.answer({"user": user, "password": password}) == (status, said)


# -- the other checks


def revoking_row(**changed: Any) -> dict[str, Any]:
    well = {
        "part": REVOKING,
        "per_process": [50, 50],
        "closed_from_end_s": -0.2,
        "wills_published": 0,
        "bystanders": 50,
        "bystanders_wills": 50,
        "bystanders_closed": 0,
        "let_in_again": 0,
    }
    return {**well, **changed}


@pytest.mark.parametrize(
    ("changed", "failing"),
    [
        ({}, set()),
        ({"closed_from_end_s": 1.2}, {"revoked_closed_s"}),
        ({"wills_published": 1}, {"wills_of_revoked_published"}),
        ({"bystanders_wills": 49}, {"wills_of_others_missing"}),
        ({"bystanders_closed": 1}, {"bystanders_closed"}),
        ({"let_in_again": 1}, {"revoked_let_in_again"}),
        ({"per_process": [100, 0]}, {"gateway_processes_used"}),
    ],
)
def test_one_bad_repetition_is_enough(changed: dict[str, Any], failing: set[str]) -> None:
    checks = revoking_checks([revoking_row(), revoking_row(**changed)])
    assert {check.name for check in checks if not check.holds} == failing


def test_whoever_is_closed_before_the_command_ends_is_not_late() -> None:
    assert revoking_checks([revoking_row()])[0].value == 0.0


@pytest.mark.parametrize(("derived_s", "holds"), [(0.00050, True), (0.00060, False)])
def test_the_cost_is_the_median_of_the_pairs(derived_s: float, holds: bool) -> None:
    pairs = [(derived_s, 0.0005), (derived_s, 0.0005), (9.0, 0.0005)]
    rows = [
        {"part": "connecting", "pair": number, "through": through, "cpu_s_per_connect": cost}
        for number, pair in enumerate(pairs)
        for through, cost in zip((DERIVED, PASSED_ON), pair, strict=True)
    ]
    found = cost_row(rows)
    assert (found["part"], found["passed_on_us"]) == (COST, 500.0)
    assert cost_checks([*rows, found])[0].holds == holds


def test_a_dead_service_is_held_against_calm_pair_by_pair() -> None:
    rows = [
        {"part": SERVICE, "pair": pair, "service": state, "connect_ms_p99": p99_ms}
        for pair, (calm_ms, dead_ms) in enumerate([(2.0, 4.0), (4.0, 4.0), (1.0, 3.0)])
        for state, p99_ms in ((CALM, calm_ms), (DEAD, dead_ms))
    ]
    found = service_row(rows)
    assert (found["dead_service_p99_ratio"], found["dead_service_p99_ratio_max"]) == (2.0, 3.0)
