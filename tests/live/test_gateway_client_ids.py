"""Whose session is whose: a client's sessions are its own, whatever it or anybody else calls itself."""

import contextlib
from collections.abc import Iterator

import pytest
from support.commands import Started
from support.credentials import password
from support.judging import BROKERS, VERSIONS, apply_access, client, judging
from support.waiting import until
from support.wire import Wire

from tidegate.model.installation import Installation
from tidegate.mqtt.packets import Ack, Connack, Disconnect, Publish
from tidegate.mqtt.properties import ASSIGNED_CLIENT_ID, SESSION_EXPIRY, Properties

pytestmark = pytest.mark.live

NOT_AUTHORIZED = 0x87
PLAN = "devices: {subscribes: ['downlink/{device}', 'plan/#']}\n"
TELLER = "applications: [{name: teller, publishes: ['#']}]\n"
KEPT = {4: Properties(), 5: Properties(values={SESSION_EXPIRY: 300})}


@pytest.fixture(scope="module", params=BROKERS)
def gateway(
    request: pytest.FixtureRequest, installation: Installation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Started]:
    with judging(request.param, installation, tmp_path_factory.mktemp("ids")) as running:
        apply_access(running, TELLER)
        yield running


@contextlib.contextmanager
def keeping(gateway: Started, name: str, version: int, client_id: str | None = None) -> Iterator[tuple[Wire, Connack]]:
    """A client whose session outlives its connection, and the answer to its CONNECT."""
    with contextlib.closing(Wire(gateway.address, version)) as wire:
        words = password(gateway.here, name)
        answer = wire.connect(name, words, client_id, clean=False, properties=KEPT[version])
        assert answer.code == 0
        yield wire, answer


def tell(gateway: Started, topic: str, payload: bytes) -> None:
    """An application may have to wait until all processes know of it."""

    def told() -> bool:
        with client(gateway, "teller") as teller:
            return isinstance(teller.publish(topic, payload), Ack)

    until(told)


@VERSIONS
def test_two_devices_with_the_same_client_id_do_not_disturb_each_other(gateway: Started, version: int) -> None:
    left, right = f"left-{version}", f"right-{version}"
    with keeping(gateway, left, version, "esp32") as (one, _), keeping(gateway, right, version, "esp32") as (two, _):
        assert one.subscribe(f"downlink/{left}") == [1]
        assert two.subscribe(f"downlink/{right}") == [1]
        tell(gateway, f"downlink/{left}", b"1")
        tell(gateway, f"downlink/{right}", b"2")
        assert [payload for _, payload in one.messages()] == [b"1"]
        assert [payload for _, payload in two.messages()] == [b"2"]
        assert one.lives
        assert two.lives


@VERSIONS
@pytest.mark.parametrize("form", ["{}", "{}/esp32", "/{}"])
def test_nobody_takes_anothers_session_over(gateway: Started, version: int, form: str) -> None:
    number = f"{version}-{len(form)}"
    name, thiefs_name = f"victim-{number}", f"thief-{number}"
    called = form.format(name)
    own = called.removeprefix(f"{name}/")
    with keeping(gateway, name, version, own) as (victim, _):
        assert victim.subscribe(f"downlink/{name}") == [1]
        with keeping(gateway, thiefs_name, version, called) as (thief, answer):
            assert not answer.session_present
            assert thief.lives
            assert victim.lives, "it was not taken over"
    tell(gateway, f"downlink/{name}", b"secret")
    with keeping(gateway, thiefs_name, version, called) as (thief, answer):
        assert answer.session_present, "its own"
        assert list(thief.messages()) == []
    with keeping(gateway, name, version, own) as (victim, answer):
        assert answer.session_present
        heard = victim.hear()
        assert isinstance(heard, Publish)
        assert heard.payload == b"secret"


@VERSIONS
def test_a_client_that_comes_again_takes_its_own_connection_over(gateway: Started, version: int) -> None:
    with keeping(gateway, "again", version) as (before, _), keeping(gateway, "again", version) as (after, _):
        assert before.is_closed()
        assert after.lives


def test_a_client_of_5_without_a_client_id_is_given_one_and_comes_back_with_it(gateway: Started) -> None:
    with keeping(gateway, "nameless", 5, "") as (first, answer):
        given = answer.properties.values[ASSIGNED_CLIENT_ID]
        assert isinstance(given, bytes)
        assert not given.startswith(b"nameless/"), "it is told the name by which it is known here, not at the broker"
        assert first.subscribe("downlink/nameless") == [1]
    tell(gateway, "downlink/nameless", b"kept")
    with keeping(gateway, "other", 5, given.decode()) as (_, answer):
        assert not answer.session_present, "it is of use to nobody else"
    with keeping(gateway, "nameless", 5, given.decode()) as (again, answer):
        assert answer.session_present
        assert ASSIGNED_CLIENT_ID not in answer.properties.values
        heard = again.hear()
        assert isinstance(heard, Publish)
        assert heard.payload == b"kept"


@VERSIONS
def test_a_session_with_a_subscription_that_is_not_allowed_any_more_says_nothing_and_ends(
    gateway: Started, version: int
) -> None:
    name = f"reader-{version}"
    apply_access(gateway, TELLER + PLAN)
    try:
        with keeping(gateway, name, version) as (reader, _):
            until(lambda: reader.subscribe("plan/all") == [1])
        tell(gateway, "plan/all", b"secret")
    finally:
        apply_access(gateway, TELLER)
    until(lambda: _is_refused_everywhere(gateway))
    with keeping(gateway, name, version) as (reader, answer):
        assert answer.session_present
        last = reader.hear()
        assert last is None if version == 4 else isinstance(last, Disconnect) and last.code == NOT_AUTHORIZED
        assert reader.is_closed()

    def has_none() -> bool:
        with keeping(gateway, name, version) as (_, answer):
            return not answer.session_present

    until(has_none)
    tell(gateway, "plan/all", b"more")
    with keeping(gateway, name, version) as (reader, _):
        assert list(reader.messages()) == []
        assert reader.lives


def _is_refused_everywhere(gateway: Started) -> bool:
    """Both processes know by now what counts: so many connections do not all meet the same one."""
    for _ in range(8):
        with client(gateway, "probe") as probe:
            if probe.subscribe("plan/all") != [0x80]:
                return False
    return True
