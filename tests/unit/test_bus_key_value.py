"""The bus's bucket as requests and answers: what a server says is read the same, whichever client carries it."""

import asyncio

import pytest
from nats.aio.client import Client

from tidegate.bus import key_value
from tidegate.bus.key_value import Answer, Entry
from tidegate.bus.wire import Frame
from tidegate.model.errors import BrokerUnavailableError

# Headers as a server (2.15) sent them.
FOUND = (
    b"NATS/1.0\r\nNats-Stream: KV_tidegate\r\nNats-Subject: $KV.tidegate.one\r\nNats-Sequence: 42\r\n"
    b"Nats-Time-Stamp: 2026-11-16T05:17:02.250000001Z\r\n\r\n"
)
DELETED = b"NATS/1.0\r\nKV-Operation: DEL\r\nNats-Sequence: 43\r\n\r\n"
MISSING = b"NATS/1.0 404 Message Not Found\r\n\r\n"
NOBODY = b"NATS/1.0 503\r\n\r\n"


def answer(headers: bytes, payload: bytes = b"") -> Answer:
    return Answer(Frame(b"s", 1, None, headers, payload).fields(), payload)


def test_an_entry_has_its_value_its_revision_and_the_bus_s_time() -> None:
    assert key_value.got("one", answer(FOUND, b"1")) == Entry(b"1", 42, 1_794_806_222.25)


@pytest.mark.parametrize("headers", [MISSING, DELETED])
def test_what_is_not_there_or_not_any_more_is_none(headers: bytes) -> None:
    assert key_value.got("one", answer(headers)) is None


def test_a_bus_without_a_bucket_is_no_missing_document() -> None:
    with pytest.raises(BrokerUnavailableError, match=r"did not give one: 503\.") as caught:
        key_value.got("one", answer(NOBODY))
    assert caught.value.where == "one"


@pytest.mark.parametrize(
    ("payload", "revision"),
    [
        (b'{"stream": "KV_tidegate", "seq": 7}', 7),
        (b'{"error": {"code": 400, "err_code": 10071, "description": "wrong last sequence: 6"}}', None),
        (b'{"error": {"code": 400, "err_code": 10164, "description": "wrong last sequence"}}', None),
    ],
)
def test_a_put_says_its_revision_or_that_another_was_first(payload: bytes, revision: int | None) -> None:
    assert key_value.put("one", answer(b"", payload)) == revision


def test_a_put_that_is_refused_for_another_reason_is_an_error() -> None:
    refused = b'{"error": {"code": 503, "err_code": 10077, "description": "maximum bytes exceeded"}}'
    with pytest.raises(BrokerUnavailableError, match="did not take one: maximum bytes exceeded"):
        key_value.put("one", answer(b"", refused))
    with pytest.raises(BrokerUnavailableError, match="did not take one: 503"):
        key_value.put("one", answer(NOBODY))


def test_a_bus_that_nobody_serves_is_away_whatever_is_asked_of_it() -> None:
    for ask in (key_value.created, key_value.listed, lambda answer: key_value.deleted("one", answer)):
        with pytest.raises(BrokerUnavailableError, match="503"):
            ask(answer(NOBODY))


def test_a_lease_is_rounded_up_to_the_bus_s_whole_seconds() -> None:
    request = key_value.to_put("one", b"1", revision=0, lease_s=1.2)
    assert request.headers == {"Nats-Expected-Last-Subject-Sequence": "0", "Nats-TTL": "2s"}
    assert key_value.to_put("one", b"1", revision=None, lease_s=None).headers is None


def test_keys_are_listed_below_a_prefix_or_all_of_them() -> None:
    payload = b'{"state": {"subjects": {"$KV.tidegate.lease.b": 1, "$KV.tidegate.lease.a": 1}}}'
    assert key_value.listed(answer(b"", payload), "lease") == ["a", "b"]
    assert key_value.listed(answer(b"", payload)) == ["lease.a", "lease.b"]
    assert key_value.listed(answer(b"", b'{"state": {"subjects": null}}'), "lease") == []


@pytest.mark.parametrize("headers", [FOUND, DELETED, MISSING, NOBODY])
def test_headers_are_read_as_the_other_client_reads_them(headers: bytes) -> None:
    theirs = asyncio.run(Client()._process_headers(headers)) or {}
    ours = answer(headers).headers
    assert {name: ours.get(name) for name in theirs} == theirs


def test_the_next_change_has_its_name_and_none_is_none() -> None:
    shard = FOUND.replace(b"$KV.tidegate.one", b"$KV.tidegate.devices.7f")
    assert key_value.got_next("devices", answer(shard, b"1")) == ("7f", Entry(b"1", 42, 1_794_806_222.25))
    assert key_value.got_next("devices", answer(MISSING)) is None
    with pytest.raises(BrokerUnavailableError, match="did not give devices"):
        key_value.got_next("devices", answer(NOBODY))
