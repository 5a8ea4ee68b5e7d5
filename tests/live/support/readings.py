"""A reading, and ways to send it that are not paho's."""

import contextlib
import http.client

from support.gateways import Running
from tidegate.model.installation import Installation
from tidegate.mqtt.packets import Connect, Will, encode

TOKEN = "secret"
READING = b'{"value": 21.5, "boot": 1, "seq": 1}'


def post(running: Running, device: str, body: bytes, token: str | None = None) -> tuple[int, str, dict[str, str]]:
    """Status, text and headers of the answer; the token is the installation's unless another is given."""
    bearer = running.here.token if token is None else token
    connection = http.client.HTTPConnection(*running.gateway.http_address, timeout=15)
    with contextlib.closing(connection):
        connection.request("POST", f"/v1/telemetry/{device}", body, {"Authorization": f"Bearer {bearer}"})
        answer = connection.getresponse()
        return answer.status, answer.read().decode(), {name.lower(): value for name, value in answer.getheaders()}


def connect_with_will(here: Installation, name: str, topic: str) -> bytes:
    connect = Connect(
        version=4,
        client_id=name.encode(),
        clean=True,
        keep_alive_s=60,
        will=Will(topic=topic.encode(), payload=b"gone", qos=0, retain=False),
        user=here.mqtt_user.encode(),
        password=here.mqtt_password.encode(),
    )
    return encode(connect, 4)
