"""Messages that no slice can take: only they are removed, what is looked at is bounded, and what went is told."""

import json
from types import SimpleNamespace
from typing import Any, cast

from tidegate.brokers.nats.strays import ALARM_S, RENEWED_S, WINDOW, Strays
from tidegate.bus.jetstream import NO_MESSAGE_FOUND
from tidegate.bus.wire import Wire
from tidegate.cli.operate import sentence
from tidegate.model.backlog import Backlog

ABSENT = {"error": {"err_code": NO_MESSAGE_FOUND}}


class Server:
    """Two streams by subject: INGEST, and ``$MQTT_msgs`` from its first sequence on."""

    def __init__(self) -> None:
        self.ingest: list[str] = []
        self.mqtt: dict[int, str] = {}
        self.asked = 0
        self.now_s = 0.0

    def state(self) -> dict[str, Any]:
        return {
            "messages": len(self.mqtt),
            "first_seq": min(self.mqtt, default=1),
            "last_seq": max(self.mqtt, default=0),
        }

    def requests(self, asked: list[tuple[str, bytes]], *, timeout_s: float | None = None) -> list[SimpleNamespace]:
        self.asked += len(asked)
        return [SimpleNamespace(status=None, payload=json.dumps(self._reply(*one)).encode()) for one in asked]

    def _reply(self, verb: str, body: bytes) -> dict[str, Any]:
        said = json.loads(body) if body else {}
        untaken = [subject for subject in self.ingest if subject.startswith("$MQTT.")]
        match verb.removeprefix("$JS.API.STREAM."):
            case "MSG.GET.INGEST":
                return {"message": {"subject": untaken[0]}} if untaken else ABSENT
            case "PURGE.INGEST":
                assert said == {"filter": "$MQTT.>"}
                self.ingest = [subject for subject in self.ingest if subject not in untaken]
                return {"purged": len(untaken)}
            case "MSG.GET.$MQTT_msgs":
                return {"message": {"subject": self.mqtt[said["seq"]]}} if said["seq"] in self.mqtt else ABSENT
            case "MSG.DELETE.$MQTT_msgs":
                del self.mqtt[said["seq"]]
                return {"success": True}
        return {"state": self.state()}


def strays(server: Server) -> Strays:
    return Strays(cast(Wire, server), lambda: server.now_s)


def test_only_what_no_slice_can_take_is_removed() -> None:
    server = Server()
    server.ingest = ["tg.0.telemetry.d", "$MQTT.msgs.telemetry.*", "tg.1.telemetry.a*b"]
    names = ["telemetry.>.x", "telemetry.a*b", "telemetry.d.*", "other.*.x", "telemetry.d", "telemetry.a//*"]
    server.mqtt = {10 + 3 * place: f"$MQTT.msgs.{name}" for place, name in enumerate(names)}
    keeper = strays(server)
    said = [keeper.remove(server.state()) for _ in range(3)]
    assert server.ingest == ["tg.0.telemetry.d", "tg.1.telemetry.a*b"]
    assert [subject.removeprefix("$MQTT.msgs.") for subject in server.mqtt.values()] == [
        "telemetry.a*b",
        "other.*.x",
        "telemetry.d",
        "telemetry.a//*",
    ]
    assert said[0] is not None
    assert said[0].startswith(
        "1 acknowledged message was removed from the brokers unread, the last on the topic 'telemetry/*'"
    )


def test_thousands_go_in_one_call() -> None:
    server = Server()
    server.mqtt = {2 * number + 1: "$MQTT.msgs.telemetry.>.x" for number in range(3_000)}
    keeper = strays(server)
    keeper.remove(server.state())
    keeper.remove(server.state())
    assert server.mqtt == {}


def test_what_waits_for_somebody_is_looked_at_once() -> None:
    server = Server()
    server.mqtt = dict.fromkeys(range(1, 10 * WINDOW), "$MQTT.msgs.telemetry.d")
    keeper = strays(server)
    for _ in range(100):
        keeper.remove(server.state())
    assert server.asked == 100 + WINDOW  # one look at INGEST each time
    assert len(server.mqtt) == 10 * WINDOW - 1


def test_what_went_is_said_for_an_hour_and_not_anew_all_the_time() -> None:
    server = Server()
    keeper = strays(server)
    assert keeper.remove(server.state()) is None
    said = set()
    for second in range(50):
        server.now_s = float(second)
        server.ingest.append("$MQTT.msgs.telemetry.*")
        said.add(keeper.remove(server.state()))
    assert len(said) == 1
    server.now_s = RENEWED_S
    assert (keeper.remove(server.state()) or "").startswith("50 acknowledged messages were removed")
    server.now_s = 49.0 + ALARM_S + 1
    assert keeper.remove(server.state()) is None


def test_status_tells_warnings_beside_alarms() -> None:
    backlog = Backlog(slices=(), upstream_waiting=0, measured_at_s=0.0, alarms=("One.",), warnings=("Two.",))
    assert sentence(backlog, {}).splitlines()[1:] == ["ALARM: One.", "ALARM: Two."]
