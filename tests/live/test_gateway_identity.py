"""Who is let in by a gateway as it is by default, on real brokers: by which password, for how long, and who never."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.bus import forget_all
from support.commands import Started, started
from support.credentials import password, settled
from support.waiting import until
from support.wire import Wire, sentence

from tidegate.brokers.nats.embedded import EmbeddedBrokers
from tidegate.brokers.settings import BrokerSettings
from tidegate.bus.installation import save_installation
from tidegate.cli.main import run
from tidegate.model.credentials import password_of
from tidegate.model.installation import Installation
from tidegate.mqtt.packets import Ack, Disconnect

pytestmark = pytest.mark.live

# In 3.1.1 and in 5: neither tells whether there is somebody of that name.
WRONG, NOT_ALLOWED, LATER = (4, 0x86), (5, 0x87), (3, 0x88)
CONNECTIONS = 20  # of one name: so many do not all meet the same process
VERSIONS = pytest.mark.parametrize("version", [pytest.param(4, id="3.1.1"), pytest.param(5, id="5")])


@pytest.fixture(scope="module")
def gateway(installation: Installation, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    state = tmp_path_factory.mktemp("judging")
    with started(installation, state, "judging", device_connections_max=CONNECTIONS) as running:
        access = state / "access.yaml"
        access.write_text("applications: [{name: watcher, subscribes: ['telemetry/#']}]\n")
        command(running, "access", "apply", str(access))
        yield running


def command(gateway: Started, *arguments: str) -> None:
    assert run([*arguments, "--state", str(gateway.state_directory)]) == 0


def code_of(
    gateway: Started, user: str | None, words: str | None, version: int = 4, client_id: str | None = None
) -> int:
    with contextlib.closing(Wire(gateway.address, version)) as client:
        return client.connect(user, words, client_id).code


@contextlib.contextmanager
def everywhere(gateway: Started, name: str, words: str, **options: str) -> Iterator[list[Wire]]:
    """Connections of one name, some at each process."""
    with contextlib.ExitStack() as opened:
        clients = []
        for number in range(CONNECTIONS):
            client = opened.enter_context(contextlib.closing(Wire(gateway.address, 4 + number % 2)))
            assert client.connect(name, words, f"{name}-{number}", **options).code == 0
            clients.append(client)
        until(lambda: all(one.connections for one in gateway.state.processes))
        yield clients


# -- by which password


@pytest.mark.parametrize("version", [3, 4, 5])
def test_a_device_comes_in_with_its_own_password_and_its_readings_are_taken(gateway: Started, version: int) -> None:
    with contextlib.closing(Wire(gateway.address, version)) as client:
        assert client.connect("pump-1", password(gateway.here, "pump-1")).code == 0
        answer = client.publish("telemetry/pump-1")
        assert isinstance(answer, Ack)
        assert answer.code == 0


def test_a_device_that_says_no_user_name_is_called_by_its_client_id(gateway: Started) -> None:
    words = password(gateway.here, "pump-2")
    assert code_of(gateway, None, words, 5, client_id="pump-2") == 0
    assert code_of(gateway, None, words, 5, client_id="pump-3") == WRONG[1]


def _old(gateway: Started) -> tuple[str, str]:
    command(gateway, "device", "rotate", "rotated", "--grace", "0")
    words = password(gateway.here, "rotated", 1)
    until(lambda: all(code_of(gateway, "rotated", words) for _ in range(8)))  # until both processes know
    return "rotated", words


@VERSIONS
@pytest.mark.parametrize(
    ("credentials", "expected"),
    [
        pytest.param(lambda g: ("pump-1", "guess"), WRONG, id="a password that is none"),
        pytest.param(lambda g: ("pump-1", password(g.here, "pump-1")[:-1] + "!"), WRONG, id="a password cut short"),
        pytest.param(lambda g: ("pump-1", password(g.here, "pump-2")), WRONG, id="another's password"),
        pytest.param(lambda g: ("pump-1", None), WRONG, id="no password"),
        pytest.param(lambda g: (None, None), WRONG, id="nothing at all"),
        pytest.param(lambda g: (g.here.mqtt_user, g.here.mqtt_password), WRONG, id="the gateway's own at the broker"),
        pytest.param(lambda g: ("operator", g.here.token), WRONG, id="an operator's token"),
        pytest.param(lambda g: ("a/b", password(g.here, "a/b")), NOT_ALLOWED, id="a name that is no level"),
        pytest.param(lambda g: ("+", password(g.here, "+")), NOT_ALLOWED, id="a name that is a wildcard"),
        pytest.param(_old, NOT_ALLOWED, id="an old generation"),
    ],
)
def test_nobody_else_is_let_in(
    gateway: Started,
    version: int,
    credentials: Callable[[Started], tuple[str | None, str | None]],
    expected: tuple[int, int],
) -> None:
    with contextlib.closing(Wire(gateway.address, version)) as client:
        answer = client.connect(*credentials(gateway), client_id="somebody")
        assert answer.code == expected[version - 4]
        assert bool(sentence(answer)) == (version == 5)
        assert client.is_closed()


def test_no_device_reaches_the_broker_past_the_gateway(gateway: Started) -> None:
    with contextlib.closing(Wire(gateway.here.mqtt_addresses[0])) as client:
        assert client.connect("pump-1", password(gateway.here, "pump-1")).code == 5


# -- for how long


def test_who_is_revoked_loses_every_connection_at_once_and_leaves_no_will(gateway: Started) -> None:
    with contextlib.closing(Wire(gateway.address)) as watcher, contextlib.closing(Wire(gateway.address)) as other:
        watcher.connect("watcher", password(gateway.here, "watcher"))
        assert watcher.subscribe("telemetry/#") == [1]
        assert other.connect("stays", password(gateway.here, "stays")).code == 0
        first = password(gateway.here, "stolen")
        with everywhere(gateway, "stolen", first, will="telemetry/stolen") as clients:
            command(gateway, "device", "revoke", "stolen")
            for client in clients:
                answers = [client.hear(2.0)]
                if client.version == 5:
                    assert isinstance(answers[0], Disconnect)
                    assert answers[0].code == NOT_ALLOWED[1]
                    assert sentence(answers[0])
                    answers.append(client.hear(2.0))
                assert answers[-1] is None
        assert [code_of(gateway, "stolen", first, version) for version in (4, 5)] == [*NOT_ALLOWED]
        assert list(watcher.messages()) == [], "its will is not published"
        assert other.lives
        command(gateway, "device", "add", "stolen")
        until(lambda: code_of(gateway, "stolen", password(gateway.here, "stolen", 2)) == 0)
        assert code_of(gateway, "stolen", first) == NOT_ALLOWED[0]
        # And a will is published where a device dies.
        with contextlib.closing(Wire(gateway.address)) as dying:
            dying.connect("dying", password(gateway.here, "dying"), will="telemetry/dying")
        heard = watcher.hear()
        assert heard is not None
        assert getattr(heard, "payload", b"") == b"gone"


def test_a_rotation_leaves_a_device_its_old_password_for_the_grace_and_no_longer(gateway: Started) -> None:
    old, new = (password(gateway.here, "turning", generation) for generation in (1, 2))
    with everywhere(gateway, "turning", old) as clients:
        command(gateway, "device", "rotate", "turning", "--grace", "2")
        until(lambda: code_of(gateway, "turning", new) == 0)
        assert clients[0].lives, "both count meanwhile"
        clients.pop().close()
        with contextlib.closing(Wire(gateway.address)) as newer:
            assert newer.connect("turning", new).code == 0
            assert all(client.is_closed() for client in clients)
            assert newer.lives
            assert code_of(gateway, "turning", old) == NOT_ALLOWED[0]


def test_passwords_of_both_keys_count_until_their_rotation_is_finished(gateway: Started) -> None:
    before = gateway.key
    with everywhere(gateway, "keyed", password_of(before, "keyed", 1)) as clients:
        command(gateway, "device", "rotate", "--installation-key")
        newer = password(gateway.here, "keyed")
        assert newer != password_of(before, "keyed", 1)
        until(lambda: all(code_of(gateway, "k", password(gateway.here, "k")) == 0 for _ in range(10)))
        assert code_of(gateway, "other", password_of(before, "other", 1)) == 0
        assert clients[0].lives
        with contextlib.closing(Wire(gateway.address)) as stays:
            clients.pop().close()
            assert stays.connect("keyed", newer).code == 0
            command(gateway, "device", "rotate", "--installation-key", "--finish")
            assert all(client.is_closed() for client in clients)
            assert code_of(gateway, "other", password_of(before, "other", 1)) == WRONG[0]
            assert stays.lives
    gateway.key = settled(gateway.here, gateway.state_directory)


# -- while nobody knows


def test_without_the_control_bus_nobody_is_let_in_until_it_is_back(tmp_path: Path) -> None:
    with EmbeddedBrokers(tmp_path, BrokerSettings(nodes=1, slices=1)) as brokers:
        here = brokers.installation
        assert here is not None
        save_installation(here, tmp_path)
        key = settled(here, tmp_path)
        words = password(here, "early")
        brokers.kill_control()
        gateway = Started(here, tmp_path, "alone", key)
        try:
            gateway.wait_ready()
            assert any("no client is let in" in line for line in gateway.said), gateway.said
            assert [code_of(gateway, "early", words, version) for version in (4, 5)] == [*LATER]
            brokers.start_control()
            until(lambda: all(code_of(gateway, "early", words) == 0 for _ in range(10)), 30)
            assert code_of(gateway, "early", "guess") == WRONG[0]
        finally:
            gateway.close()


def test_who_is_in_stays_while_the_control_bus_is_away_and_after_it_has_forgotten(
    installation: Installation, tmp_path: Path
) -> None:
    with started(installation, tmp_path, "forgetful") as gateway:
        words = password(installation, "stays")
        with contextlib.closing(Wire(gateway.address)) as client:
            client.connect("stays", words)
            forget_all(installation)
            assert client.lives
            assert code_of(gateway, "comes", password_of(gateway.key, "comes", 1)) == 0
        settled(installation, tmp_path)
