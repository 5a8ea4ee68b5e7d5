"""Who keeps the brokers' messages: found among thousands of sessions, with a bounded number of requests a look."""

import base64
import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tidegate.brokers.nats.sessions import KEPT_MIN, PAGES_MAX, REST_S, Sessions
from tidegate.bus.wire import Wire
from tidegate.model.errors import BrokerUnavailableError

PAGE = 256
STATE = {"messages": 3 * KEPT_MIN, "bytes": 30 * KEPT_MIN}


class Server:
    """So many sessions, of which one keeps much."""

    def __init__(self, sessions: int, worst: int) -> None:
        self.asked = 0
        self.is_silent = False
        names = ["JS_SRC_x", *(f"S{number:07d}_c" for number in range(sessions))]
        self._consumers = [self._consumer(name, 12_345 if name == f"S{worst:07d}_c" else 3) for name in names]
        self._consumers[0]["num_pending"] = 10**6

    @staticmethod
    def _consumer(name: str, waiting: int) -> dict[str, Any]:
        config = {"filter_subject": "$MQTT.msgs.telemetry.*.a//b.>"}
        return {"name": name, "config": config, "num_pending": waiting, "num_ack_pending": 0}

    def requests(self, asked: list[tuple[str, bytes]], *, timeout_s: float | None = None) -> list[SimpleNamespace]:
        if self.is_silent:
            raise BrokerUnavailableError("nobody answers")
        self.asked += len(asked)
        return [SimpleNamespace(status=None, payload=json.dumps(self._reply(*one)).encode()) for one in asked]

    def _reply(self, verb: str, body: bytes) -> dict[str, Any]:
        said = json.loads(body)
        if "CONSUMER.LIST" in verb:
            page = self._consumers[said["offset"] : said["offset"] + PAGE]
            return {"consumers": page, "total": len(self._consumers)}
        identifier = json.dumps({"id": f"client of {said['last_by_subj']}"}).encode()
        return {"message": {"seq": 1, "data": base64.b64encode(identifier).decode()}}


def look(sessions: Sessions, server: Server, now_s: float, *, kept: int = 2 * KEPT_MIN) -> str | None:
    return sessions.alarm(cast(Wire, server), STATE, STATE["messages"] - kept, now_s)


def test_little_is_nobodys_fault_and_costs_nothing() -> None:
    server = Server(10, 5)
    assert look(Sessions(), server, 0.0, kept=KEPT_MIN - 1) is None
    assert server.asked == 0


def test_many_bytes_count_like_many_messages() -> None:
    server = Server(10, 5)
    state = {"messages": 2_000, "bytes": 100 * 1024**2}
    assert Sessions().alarm(cast(Wire, server), state, 1_000, 0.0) is None
    assert "client of $MQTT.sess.S0000005" in (Sessions().alarm(cast(Wire, server), state, 0, 0.0) or "")


@pytest.mark.parametrize("worst", [0, 10_000, 19_999])
def test_the_worst_of_many_sessions_is_found_in_bounded_looks(worst: int) -> None:
    server, sessions, said = Server(20_000, worst), Sessions(), ""
    for second in range(20_000 // PAGE // PAGES_MAX + 1):
        before = server.asked
        said = look(sessions, server, float(second)) or ""
        assert server.asked - before <= PAGES_MAX + 1
    assert f"client of $MQTT.sess.S{worst:07d}" in said
    assert "about 20,000 messages" in said
    assert "subscription 'telemetry/+/a.b/#'" in said
    before = server.asked
    assert look(sessions, server, 15.0) == said
    assert server.asked == before
    look(sessions, server, 15.0 + REST_S)
    assert server.asked > before


def test_a_server_that_does_not_list_its_sessions_costs_no_measurement() -> None:
    server, sessions = Server(10, 5), Sessions()
    server.is_silent = True
    assert look(sessions, server, 0.0) is None
    server.is_silent = False
    assert look(sessions, server, 1.0) is not None
