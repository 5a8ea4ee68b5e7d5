"""Journals as requests and answers: how they are made, bounded, appended to, and how a refusal is said."""

import msgspec
import pytest

from tidegate.bus import journals
from tidegate.bus.client import Bus
from tidegate.bus.documents import AUDIT, LEDGER
from tidegate.bus.key_value import Answer
from tidegate.model.errors import BrokerUnavailableError
from tidegate.model.ledger import LedgerReport

REPORT = LedgerReport(gateway="g", process=1, oldest_s=10, newest_s=0, devices=(("d", ((1, 5, 9),)),))


def test_a_journal_is_bounded_as_the_catalogue_says() -> None:
    config = journals.config_of(LEDGER)
    assert config["max_age"] == 24 * 3600 * 10**9
    assert config["max_bytes"] == 256 * 1024**2
    assert config["subjects"] == ["ledger.>"]
    assert journals.config_of(AUDIT)["max_bytes"] == 64 * 1024**2
    assert "max_age" not in journals.config_of(AUDIT), "decisions are kept for as long as they fit"


def test_a_record_is_appended_under_its_writer_and_once() -> None:
    request = journals.to_append(LEDGER, REPORT, "gateway-1", "gateway-1-1-77")
    assert (request.subject, request.headers) == ("ledger.gateway-1", {"Nats-Msg-Id": "gateway-1-1-77"})
    assert LEDGER.decode(request.payload) == REPORT


@pytest.mark.parametrize(
    ("headers", "payload", "why"),
    [
        ({}, {"error": {"err_code": 10077, "description": "maximum bytes exceeded"}}, "maximum bytes exceeded"),
        ({"Status": "503"}, None, "503"),
        ({"Status": "503", "Description": "No Responders"}, None, "No Responders"),
    ],
)
def test_a_refusal_is_said(headers: dict[str, str], payload: object, why: str) -> None:
    answer = Answer(headers, b"" if payload is None else msgspec.json.encode(payload))
    with pytest.raises(BrokerUnavailableError, match=f"LEDGER on the control bus did not take a record: {why}"):
        journals.appended(LEDGER, answer)


def test_a_journal_that_another_version_made_serves_as_well() -> None:
    journals.appended(LEDGER, Answer({}, b'{"stream":"LEDGER","seq":3}'))
    in_use = Answer({}, b'{"error":{"err_code":10058,"description":"stream name already in use"}}')
    assert not journals.created(LEDGER, in_use), "its bounds are others"
    assert journals.created(LEDGER, Answer({}, b'{"config":{},"state":{}}'))
    with pytest.raises(BrokerUnavailableError, match="in use"):
        journals.appended(LEDGER, in_use)


def test_a_journal_that_another_version_made_gets_the_bounds_of_this_one() -> None:
    request = journals.to_update(AUDIT)
    assert request.subject == "$JS.API.STREAM.UPDATE.AUDIT"
    assert msgspec.json.decode(request.payload)["max_bytes"] == 64 * 1024**2
    assert journals.updated(AUDIT, Answer({}, b'{"config":{},"state":{}}')) is None
    refused = Answer({}, b'{"error":{"err_code":10047,"description":"insufficient storage resources"}}')
    said = journals.updated(AUDIT, refused)
    assert said is not None
    assert "AUDIT on the control bus keeps the bounds" in said
    assert "insufficient storage resources" in said


def test_the_ends_of_a_journal_without_records_are_no_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a server (2.15) says it of a stream that nobody has written to."""
    said = {
        "created": "2026-11-17T05:20:00Z",
        "ts": "2026-11-17T05:20:01.5Z",
        "state": {"messages": 0, "first_seq": 0, "last_seq": 0},
    }
    monkeypatch.setattr(journals, "ask_all", lambda *_, **__: [said])
    with Bus(["nats://nowhere"]) as bus:
        ends = journals.JournalReader(bus, LEDGER).ends()
    assert (ends.first, ends.last, ends.created) == (1, 0, "2026-11-17T05:20:00Z")
    assert ends.now_s == 1_794_892_801.5
    monkeypatch.setattr(journals, "ask_all", lambda *_, **__: [{"error": {"err_code": 10059}}])
    with Bus(["nats://nowhere"]) as bus:
        assert journals.JournalReader(bus, LEDGER).ends() == (1, 0, "", 0.0)
