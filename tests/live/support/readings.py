"""A reading, and ways to send it that are not paho's."""

import base64
import contextlib
import http.client
import ssl
from typing import NamedTuple

from support.credentials import password
from tidegate.model.installation import Installation
from tidegate.mqtt.packets import Connect, Will, encode

TOKEN = "secret"
READING = b'{"value": 21.5, "boot": 1, "seq": 1}'


class Answer(NamedTuple):
    status: int
    text: str
    headers: dict[str, str]


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def own(here: Installation, device: str, generation: int = 1) -> str:
    """By its own name, with the password that the installation's key derives."""
    return basic(device, password(here, device, generation))


def post(
    address: tuple[str, int],
    device: str,
    authorization: str | None,
    body: bytes = READING,
    *,
    tls: ssl.SSLContext | None = None,
) -> Answer:
    """A reading by HTTP, on a connection of its own."""
    connection: http.client.HTTPConnection = http.client.HTTPConnection(*address, timeout=15)
    if tls is not None:
        connection = http.client.HTTPSConnection("localhost", address[1], context=tls, timeout=15)
    with contextlib.closing(connection):
        headers = {} if authorization is None else {"Authorization": authorization}
        connection.request("POST", f"/v1/telemetry/{device}", body, headers)
        answer = connection.getresponse()
        said = {name.lower(): value for name, value in answer.getheaders()}
        return Answer(answer.status, answer.read().decode(), said)


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
