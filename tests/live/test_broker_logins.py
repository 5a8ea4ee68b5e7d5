"""Who is let in by the embedded brokers: gateways at the MQTT listener, and nobody there but them."""

import json
import socket
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from support.clients import CONNACK, connected, is_closed, received
from support.log import Log
from support.waiting import until

from tidegate.brokers.nats.embedded import EmbeddedBrokers
from tidegate.brokers.settings import BrokerSettings
from tidegate.bus.wire import Wire
from tidegate.model.errors import BrokerUnavailableError
from tidegate.model.installation import Installation
from tidegate.mqtt.client import encode_connect

pytestmark = pytest.mark.live
BAD_CREDENTIALS, NOT_AUTHORISED = b"\x20\x02\x00\x04", b"\x20\x02\x00\x05"
SETTINGS = BrokerSettings(slices=1)


def answer(here: Installation, user: str, password: str) -> bytes:
    """What a client hears that goes past the gateway."""
    with socket.create_connection(here.mqtt_addresses[0], timeout=10) as connection:
        connection.sendall(encode_connect("direct", user=user, password=password, keep_alive_s=30))
        said = received(connection, 4)
        assert said == CONNACK or is_closed(connection)
        return said


def pipeline(here: Installation) -> tuple[str, str]:
    own = urlsplit(here.data_urls[0])
    return own.username or "", own.password or ""


def test_the_gateways_are_let_in(installation: Installation) -> None:
    assert installation.mqtt_user == "gateway"
    assert answer(installation, installation.mqtt_user, installation.mqtt_password) == CONNACK


@pytest.mark.parametrize(
    ("user", "password"),
    [
        pytest.param("", "", id="nobody"),
        pytest.param("gateway", "", id="the gateways' user without its password"),
        pytest.param("gateway", "guess", id="the gateways' user with another password"),
        pytest.param("device", "<password>", id="the user that earlier versions had"),
        pytest.param("system", "<password>", id="another user with the gateways' password"),
        pytest.param("<pipeline>", "<pipeline>", id="the pipeline, which reads the log and needs no MQTT"),
    ],
)
def test_everybody_else_is_refused_at_the_mqtt_listener(installation: Installation, user: str, password: str) -> None:
    known = {"<password>": installation.mqtt_password}
    if user == "<pipeline>":
        user, known["<pipeline>"] = pipeline(installation)
    assert answer(installation, user, known.get(password, password)) in (BAD_CREDENTIALS, NOT_AUTHORISED)


def test_the_gateways_credentials_open_nothing_but_mqtt(installation: Installation) -> None:
    port = urlsplit(installation.data_urls[0]).port
    url = f"nats://{installation.mqtt_user}:{installation.mqtt_password}@127.0.0.1:{port}"
    with Wire([url]) as wire, pytest.raises(BrokerUnavailableError, match="Authorization"):
        wire.request("telemetry.x", timeout_s=2.0)


@pytest.fixture
def earlier(tmp_path: Path) -> tuple[Path, str]:
    """A state directory as earlier versions left it, with a reading in it."""
    with EmbeddedBrokers(tmp_path, SETTINGS) as before, Log(_here(before)) as log:
        with connected(_here(before), "d") as device:
            device.published("telemetry/d", b"kept")
        until(lambda: log.count() == 1)
    path = tmp_path / "brokers.json"
    identity = json.loads(path.read_bytes())
    passwords = identity["passwords"]
    password = passwords["device"] = passwords.pop("gateway", None) or passwords["device"]
    path.write_text(json.dumps(identity))
    return tmp_path, password


def _here(brokers: EmbeddedBrokers) -> Installation:
    assert brokers.installation is not None
    return brokers.installation


def arrives(log: Log, payload: bytes) -> None:
    """A single broker begins to move messages up to 20 s after its start."""
    until(lambda: payload in [found for _, found in log.messages()], 60.0, every_s=0.2)


def test_a_state_directory_of_an_earlier_version_still_starts(earlier: tuple[Path, str]) -> None:
    state, password = earlier
    with EmbeddedBrokers(state, SETTINGS) as brokers, Log(_here(brokers)) as log:
        here = _here(brokers)
        assert (here.mqtt_user, here.mqtt_password) == ("gateway", password)
        assert [payload for _, payload in log.messages()] == [b"kept"]
        with connected(here, "d") as device:
            device.published("telemetry/d", b"new")
        arrives(log, b"new")
        brokers.kill_all()
        brokers.start_all()
        log.close()
        log.open_for_traffic()
        with connected(here, "d") as device:
            device.published("telemetry/d", b"after a restart")
        arrives(log, b"after a restart")
