"""What a client may publish and hear through a gateway as it is by default: its own, and nothing of anybody else."""

import contextlib
from collections.abc import Iterator

import pytest
from support.commands import Started
from support.credentials import password
from support.judging import BROKERS, VERSIONS, apply_access, client, judging
from support.waiting import until
from support.wire import Wire, sentence

from tidegate.model.installation import Installation
from tidegate.mqtt.packets import PUBACK, PUBREC, Ack, Disconnect, Packet, Pong, Publish
from tidegate.mqtt.properties import PACKET_BYTES_MAX, REQUEST_PROBLEM_INFORMATION, Properties

pytestmark = pytest.mark.live

NOT_AUTHORIZED = 0x87
SHARED_NOT_SUPPORTED = 0x9E
NOT_ITS_OWN = "not its own topic"
ACCESS = """
applications:
  - {name: watcher, subscribes: ["#"]}
  - {name: bridge, publishes: ["plant/+/set", "downlink/#"], subscribes: ["telemetry/+/alarm"]}
  - {name: edge, speaks_for: ["pump-*", "valve"]}
"""
# Of another device, above it, and none of anybody.
OTHERS = ("telemetry/pump-2", "telemetry/pump-10", "telemetry", "telemetry/pump-1x", "downlink/pump-1", "pump-1", "a/b")
FILTERS = (
    "downlink/pump-2",
    "downlink/+",
    "downlink/#",
    "+/pump-1",
    "#",
    "telemetry/#",
    "$share/g/telemetry/#",
    "$share/g/downlink/pump-2",
    "$SYS/#",
)


@pytest.fixture(scope="module", params=BROKERS)
def gateway(
    request: pytest.FixtureRequest, installation: Installation, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Started]:
    with judging(request.param, installation, tmp_path_factory.mktemp("rights")) as running:
        yield running


@pytest.fixture(autouse=True)
def _access(gateway: Started) -> None:
    apply_access(gateway, ACCESS)
    # Both processes know of it before anything is asked.
    until(lambda: all(_sees_all(gateway) for _ in range(8)))


def _sees_all(gateway: Started) -> bool:
    with client(gateway, "watcher") as watcher:
        return watcher.subscribe("#") == [1]


@pytest.fixture
def watcher(gateway: Started) -> Iterator[Wire]:
    """Hears whatever reaches the broker from now on."""
    with client(gateway, "watcher") as watching:
        assert watching.subscribe("#") == [1]
        list(watching.messages())  # what is retained
        yield watching


def counted(gateway: Started) -> int:
    return gateway.state.dropped.get(NOT_ITS_OWN, 0)


def is_taken(answer: Packet | None) -> bool:
    """A broker may say that nobody listens."""
    return isinstance(answer, Ack) and answer.code < 0x80


def is_refused(answer: Packet | None, version: int) -> bool:
    return answer is None if version == 4 else isinstance(answer, Ack) and answer.code == NOT_AUTHORIZED


# -- devices


@VERSIONS
def test_a_device_has_its_own_topics(gateway: Started, watcher: Wire, version: int) -> None:
    with client(gateway, "pump-1", version, will="telemetry/pump-1/gone") as pump:
        assert pump.subscribe("downlink/pump-1", "downlink/pump-1/#", "tidegate/advice") == [1, 1, 0]
        for qos in (0, 1):
            assert pump.publish("telemetry/pump-1", b"%d" % qos, qos) is not None
            assert watcher.hear() is not None
        released = pump.publish("telemetry/pump-1/alarm", b"2", 2)
        assert isinstance(released, Ack)
        assert (released.kind, released.code) == (PUBREC, 0)
        with client(gateway, "bridge") as bridge:
            bridge.publish("downlink/pump-1/set", b"faster")
        heard = pump.hear()
        assert isinstance(heard, Publish)
        assert (heard.topic, heard.payload) == (b"downlink/pump-1/set", b"faster")


@pytest.mark.parametrize("topic", OTHERS)
@pytest.mark.parametrize("qos", [0, 1, 2])
def test_before_5_a_publish_on_anothers_topic_ends_the_connection(
    gateway: Started, watcher: Wire, topic: str, qos: int
) -> None:
    with client(gateway, "pump-1") as pump:
        assert pump.publish(topic, b"forged", qos, retain=True) is None
    assert list(watcher.messages()) == []


@pytest.mark.parametrize("topic", OTHERS)
def test_in_5_a_publish_on_anothers_topic_is_refused_and_the_connection_stays(
    gateway: Started, watcher: Wire, topic: str
) -> None:
    before = counted(gateway)
    with client(gateway, "pump-1", 5) as pump:
        for qos, kind in ((1, PUBACK), (2, PUBREC)):
            answer = pump.publish(topic, b"forged", qos, retain=True)
            assert isinstance(answer, Ack)
            assert (answer.kind, answer.code) == (kind, NOT_AUTHORIZED)
            assert sentence(answer) == "This topic is not one of this client's."
        assert isinstance(pump.publish(topic, b"forged", 0), Pong), "nothing but the answer to the ping"
        assert is_taken(pump.publish("telemetry/pump-1", b"own"))
    assert list(watcher.messages()) == [("telemetry/pump-1", b"own")]
    until(lambda: counted(gateway) >= before + 3)


@pytest.mark.parametrize(
    "wants",
    [
        pytest.param({REQUEST_PROBLEM_INFORMATION: 0}, id="that wants no sentences"),
        pytest.param({PACKET_BYTES_MAX: 20}, id="that takes small packets alone"),
    ],
)
def test_a_device_is_refused_without_words(gateway: Started, wants: dict[int, int | bytes]) -> None:
    with contextlib.closing(Wire(gateway.address, 5)) as pump:
        pump.connect("pump-1", password(gateway.here, "pump-1"), properties=Properties(values=wants))
        answer = pump.publish("telemetry/pump-2", b"forged")
        assert isinstance(answer, Ack)
        assert (answer.code, sentence(answer)) == (NOT_AUTHORIZED, "")


def test_an_alias_is_no_way_to_anothers_topic(gateway: Started, watcher: Wire) -> None:
    with client(gateway, "pump-1", 5) as pump:
        assert is_taken(pump.publish("telemetry/pump-1", b"own", alias=1))
        assert is_taken(pump.publish("", b"again", alias=1))
        answer = pump.publish("telemetry/pump-2", b"forged", alias=1)
        # Where the broker keeps the aliases there can be no going on.
        if isinstance(answer, Ack):
            assert answer.code == NOT_AUTHORIZED
            answer = pump.publish("", b"forged again", alias=1)
            assert isinstance(answer, Ack)
            assert answer.code == NOT_AUTHORIZED
        else:
            assert isinstance(answer, Disconnect)
            assert answer.code == NOT_AUTHORIZED
            assert pump.is_closed()
    assert list(watcher.messages()) == [("telemetry/pump-1", b"own"), ("telemetry/pump-1", b"again")]


@VERSIONS
def test_a_will_on_anothers_topic_is_not_taken(gateway: Started, watcher: Wire, version: int) -> None:
    with contextlib.closing(Wire(gateway.address, version)) as pump:
        answer = pump.connect("pump-1", password(gateway.here, "pump-1"), will="telemetry/pump-2")
        assert answer.code == {4: 5, 5: NOT_AUTHORIZED}[version]
        assert pump.is_closed()
    assert list(watcher.messages()) == []


@VERSIONS
def test_a_device_hears_nothing_of_others(gateway: Started, version: int) -> None:
    refused = {4: 0x80, 5: NOT_AUTHORIZED}[version]
    with client(gateway, "pump-1", version) as pump, client(gateway, "bridge") as bridge:
        for one in FILTERS:
            codes = (refused, SHARED_NOT_SUPPORTED) if one.startswith("$share") else (refused,)
            assert pump.subscribe(one)[0] in codes, one
        assert pump.subscribe("#", "downlink/pump-1", "downlink/pump-2") == [refused, 1, refused]
        bridge.publish("downlink/pump-2", b"secret")
        bridge.publish("downlink/pump-1", b"mine")
        assert list(pump.messages()) == [("downlink/pump-1", b"mine")]


# -- applications


@VERSIONS
def test_an_application_may_what_its_patterns_say(gateway: Started, watcher: Wire, version: int) -> None:
    refused = {4: 0x80, 5: NOT_AUTHORIZED}[version]
    with client(gateway, "bridge", version) as bridge, client(gateway, "pump-1") as pump:
        assert bridge.subscribe("telemetry/+/alarm", "telemetry/pump-1/alarm", "telemetry/#") == [1, 1, refused]
        pump.publish("telemetry/pump-1/alarm", b"hot")
        assert {topic for topic, _ in bridge.messages()} == {"telemetry/pump-1/alarm"}
        assert is_taken(bridge.publish("plant/west/set"))
        answer = bridge.publish("telemetry/bridge")
        assert is_refused(answer, version)
    heard = {topic for topic, _ in watcher.messages()}
    assert heard == {"telemetry/pump-1/alarm", "plant/west/set"}, "an application is no device"


@VERSIONS
def test_an_edge_gateway_speaks_for_its_devices_and_no_others(gateway: Started, watcher: Wire, version: int) -> None:
    with client(gateway, "edge", version) as edge:
        for topic in ("telemetry/pump-7", "telemetry/pump-8/alarm", "telemetry/valve"):
            assert is_taken(edge.publish(topic, topic.encode()))
        refused = {4: 0x80, 5: NOT_AUTHORIZED}[version]
        assert edge.subscribe("downlink/pump-7", "downlink/valve", "downlink/engine") == [1, 1, refused]
        answer = edge.publish("telemetry/engine", b"forged")
        assert is_refused(answer, version)
    assert [topic for topic, _ in watcher.messages()] == [
        "telemetry/pump-7",
        "telemetry/pump-8/alarm",
        "telemetry/valve",
    ]


# -- while they are connected


@VERSIONS
def test_access_that_is_widened_and_narrowed_counts_for_those_who_are_connected(gateway: Started, version: int) -> None:
    widened = ACCESS + "devices: {publishes: ['telemetry/{device}', 'status/{device}'], subscribes: ['plan/#']}\n"
    with (
        client(gateway, "pump-1", version) as publishes,
        client(gateway, "pump-3", version) as subscribes,
        client(gateway, "pump-4", version) as stays,
    ):
        apply_access(gateway, widened)
        until(lambda: publishes.subscribe("plan/pumps") == [1])
        until(lambda: subscribes.subscribe("plan/pumps") == [1])
        assert is_taken(publishes.publish("status/pump-1"))
        apply_access(gateway, ACCESS)
        # Both have subscribed to what they may not hear any more: they are closed, and told why.
        for gone in (publishes, subscribes):
            last = gone.hear()
            assert last is None if version == 4 else isinstance(last, Disconnect) and last.code == NOT_AUTHORIZED
            assert gone.is_closed()
        assert stays.lives, "whoever is still allowed all it does stays connected"
        assert is_taken(stays.publish("telemetry/pump-4"))
        answer = stays.publish("status/pump-4")
        assert is_refused(answer, version)


def test_a_will_that_is_not_allowed_any_more_takes_its_connection_along_and_is_not_published(
    gateway: Started, watcher: Wire
) -> None:
    apply_access(gateway, ACCESS + "devices: {publishes: ['wills/{device}']}\n")
    words = password(gateway.here, "pump-5")
    wires = list[Wire]()

    def comes_in() -> bool:
        wires.append(Wire(gateway.address))
        return wires[-1].connect("pump-5", words, will="wills/pump-5").code == 0

    until(comes_in)
    apply_access(gateway, ACCESS)
    assert wires[-1].is_closed()
    for wire in wires:
        wire.close()
    assert list(watcher.messages()) == []
