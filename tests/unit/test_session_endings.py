"""A session ends in two steps: whoever comes back between them keeps what it has, and nobody else's goes."""

import base64
import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tidegate.brokers.nats.session_endings import SETTLE_S, Endings
from tidegate.brokers.nats.session_looks import Waiting
from tidegate.brokers.nats.session_records import CONSUMER_NOT_FOUND, NOT_DELETED, read_record
from tidegate.brokers.sessions import AbsentSession, Ending
from tidegate.bus.jetstream import NO_MESSAGE_FOUND
from tidegate.bus.wire import Wire
from tidegate.model.errors import BrokerUnavailableError

OLD = ("HASH_a", "HASH_b")
NEW = ("HASH_c",)


class Server:
    """One session's record, by sequence, and all consumers."""

    def __init__(self) -> None:
        self.sequence = 7
        self.record: dict[str, Any] | None = said(OLD)
        self.consumers = {*OLD, "OTHER_a", "JS_SRC_x", "$MQTT_PUBREL_HASH"}
        self.hangs = False

    def comes_back(self, consumers: tuple[str, ...]) -> None:
        self.sequence, self.record = self.sequence + 1, said(consumers)
        self.consumers |= set(consumers)

    def requests(self, asked: list[tuple[str, bytes]], *, timeout_s: float | None = None) -> list[SimpleNamespace]:
        if self.hangs:
            raise BrokerUnavailableError("It hangs.")
        return [SimpleNamespace(status=None, payload=json.dumps(self._reply(*one)).encode()) for one in asked]

    def _reply(self, verb: str, body: bytes) -> dict[str, Any]:
        match verb.removeprefix("$JS.API.").split(".", 3):
            case ["STREAM", "MSG", "GET", "$MQTT_sess"]:
                if self.record is None:
                    return {"error": {"err_code": NO_MESSAGE_FOUND}}
                data = base64.b64encode(json.dumps(self.record).encode()).decode()
                return {"message": {"seq": self.sequence, "data": data, "subject": "$MQTT.sess.HASH"}}
            case ["STREAM", "MSG", "DELETE", "$MQTT_sess"]:
                if self.record is None or json.loads(body)["seq"] != self.sequence:
                    return {"error": {"err_code": NOT_DELETED}}
                self.record = None
                return {"success": True}
            case ["CONSUMER", "DELETE", _, name]:
                if name not in self.consumers:
                    return {"error": {"err_code": CONSUMER_NOT_FOUND}}
                self.consumers.remove(name)
                return {"success": True}
        raise AssertionError(verb)


def said(consumers: tuple[str, ...]) -> dict[str, Any]:
    cons = {name: {"durable_name": name} for name in consumers}
    return {"id": "pump", "cons": cons, "pubrel": {"durable_name": "$MQTT_PUBREL_HASH"}}


class Ended:
    def __init__(self) -> None:
        self.server = Server()
        self.wire = cast(Wire, self.server)
        self.endings = Endings(self.wire)

    def begin(self) -> None:
        held = [Waiting(consumer=OLD[0], subjects="$MQTT.msgs.a.>", messages=3, floor=0, is_bound=False)]
        ending = Ending(session=AbsentSession(name="HASH"), kept="3 messages", setting="session_messages_max")
        self.endings.begin(ending, read_record(self.wire, "HASH"), held, 0.0)

    def finish(self, clock_s: float = SETTLE_S) -> list[str]:
        return list(self.endings.finish(clock_s))


def test_its_record_goes_first_and_its_consumers_a_little_later() -> None:
    ended = Ended()
    ended.begin()
    assert ended.server.record is None
    assert ended.finish(SETTLE_S / 2) == []
    assert set(OLD) <= ended.server.consumers
    (sentence,) = ended.finish()
    assert sentence == (
        "that of client 'pump' (subscription 'a/#'), which kept 3 messages (setting session_messages_max)"
    )
    assert ended.server.consumers == {"OTHER_a", "JS_SRC_x"}
    assert ended.finish(9.0) == []


@pytest.mark.parametrize(
    ("consumers", "is_gone", "left"),
    [
        pytest.param(
            OLD, False, {*OLD, "$MQTT_PUBREL_HASH"}, id="both succeeded: it has its old consumers, and keeps them"
        ),
        pytest.param(NEW, True, {*NEW, "$MQTT_PUBREL_HASH"}, id="it began anew: the old ones go, and its own stay"),
    ],
)
def test_a_client_that_comes_back_between_the_steps(consumers: tuple[str, ...], is_gone: bool, left: set[str]) -> None:
    ended = Ended()
    ended.begin()
    ended.server.comes_back(consumers)
    assert bool(ended.finish()) is is_gone
    assert ended.server.consumers == left | {"OTHER_a", "JS_SRC_x"}
    assert ended.server.record is not None


def test_a_client_that_came_back_before_loses_nothing() -> None:
    ended = Ended()
    before = read_record(ended.wire, "HASH")
    ended.server.comes_back(OLD)
    ending = Ending(session=AbsentSession(name="HASH"), kept="", setting="")
    ended.endings.begin(ending, before, [], 0.0)
    assert "HASH" not in ended.endings
    assert ended.finish() == []
    assert set(OLD) <= ended.server.consumers


def test_consumers_that_no_record_names_go_too() -> None:
    ended = Ended()
    ended.server.record = None
    ended.begin()
    (sentence,) = ended.finish()
    assert "that of an unknown client" in sentence
    assert OLD[0] not in ended.server.consumers


def test_a_broker_that_hangs_meanwhile_is_asked_again() -> None:
    ended = Ended()
    ended.begin()
    ended.server.hangs = True
    with pytest.raises(BrokerUnavailableError):
        ended.finish()
    ended.server.hangs = False
    assert len(ended.finish()) == 1
    assert ended.server.consumers == {"OTHER_a", "JS_SRC_x"}


def test_a_record_that_cannot_be_read_has_no_client() -> None:
    """Whether its client is connected is not known then."""
    ended = Ended()
    ended.server.record = {"of": "another version"}
    record = read_record(ended.wire, "HASH")
    assert record is not None
    assert (record.sequence, record.client) == (7, "")
