"""The tab about devices, without a browser: who is refused, how a first reading comes, what is known of one device."""

from typing import Any

import msgspec
import pytest
from rich.pretty import pretty_repr

from tidegate.gateway.identity.verdicts import REFUSALS
from tidegate.gateway.shared.reasons import REASONS
from tidegate.model.clients import ClientAnswer, ClientState, DeviceReport, Ended
from tidegate.model.credentials import Key, password_of
from tidegate.model.decisions import Mode
from tidegate.model.device_words import described_fully, lines
from tidegate.model.first_reading import FirstReading
from tidegate.model.identity import IDENTITY_REFUSALS
from tidegate.model.limits import LimitMet
from tidegate.model.observations import GatewayState, NodeState, SliceState
from tidegate.model.registration import Entry, Registered, Revocation
from tidegate.model.view import ChainStates, IdentityState, Sample, View
from tidegate.report.pasting import http_line, place_of
from tidegate.web.components.pasted import line_html
from tidegate.web.components.refusals import refusals
from tidegate.web.metrics.exposition import exposition
from tidegate.web.tabs.devices.bringing import bringing_html
from tidegate.web.tabs.devices.looking_up import report_html
from tidegate.web.tabs.devices.sentence import sentence
from tidegate.web.tabs.devices.tables import values
from tidegate.web.tabs.overview.first_reading import first_reading_html
from tidegate.web.values.first_lines import nothing_has_arrived
from tidegate.web.values.gateway_history import GatewayHistory, Record

PASSWORD = password_of(Key(id="k1", secret=b"s" * 32), "hello", 1)
FIRST = FirstReading(device="hello", password=PASSWORD, mqtt=("127.0.0.1", 1883), http=("::1", 8080))


def gateway(at_s: float = 0.0, name: str = "g1", **fields: Any) -> GatewayState:
    counts = {"connections": 0, "publishes": 0, "acknowledged": 0, "advised": 0}
    return GatewayState(name=name, address="h:1883", measured_at_s=at_s, **(counts | fields))


def followed(*states: GatewayState) -> dict[str, Record]:
    history = GatewayHistory()
    for state in states:
        history.follow((state,))
    return history.records()


def view(*, waiting: int = 0, arrival_per_s: float = 0.0, **fields: Any) -> View:
    sample = Sample(
        at_s=100.0,
        age_s=0.0,
        arrival_per_s=arrival_per_s,
        departure_per_s=0.0,
        waiting=waiting,
        devices=0,
        interval_s=0.0,
        capacity_per_s=None,
        phase="idle",
    )
    found: dict[str, Any] = {"samples": (sample,), "chain": ChainStates(gateways=(gateway(),))}
    return View(name="x", controller="c1", leader="c1", mode=Mode(), decisions=(), **(found | fields))


# -- the sentence


@pytest.mark.parametrize(
    ("shown", "identity", "says"),
    [
        pytest.param((), IdentityState(), "No gateway runs: no device can connect.", id="no gateway"),
        pytest.param(
            (gateway(0, connections=1),),
            IdentityState(),
            "1 client is connected. How many are refused over identity is not known yet.",
            id="too early to say",
        ),
        pytest.param(
            (gateway(0), gateway(60, connections=800, refused={"not MQTT": 9})),
            IdentityState(key_id="k1"),
            "800 clients are connected. Nobody was refused over identity in the last minute.",
            id="refused for another reason",
        ),
        pytest.param(
            (gateway(0, refused={"revoked": 4}), gateway(60, refused={"revoked": 5})),
            IdentityState(),
            "0 clients are connected. 1 refusal a minute is about identity: revoked.",
            id="one",
        ),
        pytest.param(
            (gateway(0), gateway(33, refused={"revoked": 1})),
            IdentityState(),
            "0 clients are connected. 2 refusals a minute are about identity: revoked.",
            id="nobody is refused in part",
        ),
        pytest.param(
            (gateway(0), gateway(60, refused={"wrong credentials": 9, "not its own topic": 3})),
            IdentityState(key_id="k2", previous_key_id="k1"),
            "0 clients are connected. 12 refusals a minute are about identity, mostly: wrong credentials. The rotation "
            "from key k1 to key k2 is under way: when every device has its new password, 'tidegate device rotate "
            "--installation-key --finish' ends it.",
            id="several, during a rotation",
        ),
    ],
)
def test_one_sentence_says_who_is_there_and_who_is_refused(
    shown: tuple[GatewayState, ...], identity: IdentityState, says: str
) -> None:
    assert sentence(shown[-1:], followed(*shown), identity) == says


def test_one_gateway_of_which_nothing_is_known_yet_makes_the_sum_unknown() -> None:
    records = followed(gateway(0), gateway(60, refused={"revoked": 6}))
    assert "not known yet" in sentence((gateway(60), gateway(60, "g2")), records, IdentityState())


def test_every_reason_for_which_identities_are_refused_is_one_that_gateways_count() -> None:
    assert set(IDENTITY_REFUSALS) <= set(REASONS)
    assert {one.reason for one in REFUSALS} <= set(IDENTITY_REFUSALS)


# -- tables


def test_only_refusals_over_identity_have_rows() -> None:
    shown = gateway(60, refused={"not MQTT": 9, "revoked": 2, "wrong credentials": 0})
    table = refusals((shown,), followed(gateway(0), shown), IDENTITY_REFUSALS, "Nobody.")
    assert table.rows == (("g1", "revoked", "2", "2"),)
    assert "Nobody." in refusals((gateway(),), {}, IDENTITY_REFUSALS, "Nobody.").html()


@pytest.mark.parametrize(
    ("identity", "rows"),
    [
        pytest.param(
            IdentityState(),
            {
                "Registered devices": "?",
                "Revoked names": "?",
                "Access": "as the settings say",
                "Current key": "?",
                "Previous key": "none",
            },
            id="nothing is known",
        ),
        pytest.param(
            IdentityState(
                registered=1_200,
                revoked=3,
                access_name="a.yaml",
                access_applied_at_s=100.0,
                key_id="k2",
                previous_key_id="k1",
            ),
            {
                "Registered devices": "1,200",
                "Revoked names": "3",
                "Access": "a.yaml",
                "Access applied": "5 min ago",
                "Current key": "k2",
                "Previous key": "k1",
            },
            id="all is known",
        ),
    ],
)
def test_values(identity: IdentityState, rows: dict[str, str]) -> None:
    assert dict(values(identity, 400.0).rows) == rows


def test_what_is_not_counted_has_no_metric() -> None:
    assert b"tidegate_devices_" not in exposition(view(samples=()), 0.0)
    told = exposition(view(identity=IdentityState(registered=1_200, revoked=3)), 0.0)
    assert b"tidegate_devices_registered 1200.0" in told
    assert b"tidegate_devices_revoked 3.0" in told


# -- a first reading


def test_the_lines_are_whole_and_their_password_is_in_no_representation() -> None:
    html = bringing_html(FIRST)
    assert f"-u hello -P {PASSWORD} -i hello -q 1 -t telemetry/hello" in html
    assert f"curl -i -u hello:{PASSWORD}" in html
    assert "http://[::1]:8080/v1/telemetry/hello" in html
    assert "tidegate device add NAME" in html
    for text in (repr(FIRST), str(FIRST), f"{FIRST}", pretty_repr(FIRST)):
        assert PASSWORD not in text
        assert "hello" in text


def test_without_http_and_without_any_line_it_says_so() -> None:
    assert "curl" not in bringing_html(msgspec.structs.replace(FIRST, http=None))
    assert "There is no line to paste" in bringing_html(None)


def test_what_is_pasted_is_one_word_to_the_shell_and_text_to_the_page() -> None:
    assert "http://h:80/v1/telemetry/a%20b" in http_line(("h", 80), "a b", "it's", "a b")
    assert "'a b:it'\"'\"'s'" in http_line(("h", 80), "a b", "it's", "a b")
    assert place_of(("10.0.0.1", 1)) == "10.0.0.1:1"
    assert "<b>" not in line_html("<b>")


@pytest.mark.parametrize(
    ("shown", "nothing"),
    [
        pytest.param(view(), True, id="a new installation"),
        pytest.param(view(samples=()), False, id="nothing is measured yet"),
        pytest.param(view(waiting=1), False, id="something waits"),
        pytest.param(view(arrival_per_s=0.1), False, id="something arrives"),
        pytest.param(view(chain=ChainStates()), False, id="no gateway says anything"),
        pytest.param(view(chain=ChainStates(gateways=(gateway(publishes=1),))), False, id="a gateway has seen one"),
        pytest.param(
            view(chain=ChainStates(gateways=(gateway(),), slices=(SliceState(number=0, stored=7),))),
            False,
            id="the log has some of an earlier day",
        ),
        pytest.param(
            view(chain=ChainStates(gateways=(gateway(),), slices=(SliceState(number=0),))),
            False,
            id="what the log has is not known",
        ),
        pytest.param(
            view(
                chain=ChainStates(
                    gateways=(gateway(),),
                    slices=(SliceState(number=0, stored=0),),
                    nodes=(NodeState(name="n", alive=True, slices=(0,), rows=0),),
                )
            ),
            True,
            id="log and tables are empty",
        ),
    ],
)
def test_the_first_screen_tells_what_to_do_until_something_has_arrived(shown: View, nothing: bool) -> None:
    assert nothing_has_arrived(shown) is nothing
    assert (PASSWORD in first_reading_html(shown, FIRST)) is nothing
    assert first_reading_html(shown, None) == ""


# -- one device

CONNECTED = ClientState(
    gateway="g1",
    client_id="pump-1",
    address="192.0.2.7:1",
    broker="broker-1",
    version="5",
    method="derived",
    credits_left=8_211.0,
    subscriptions=2,
    held=8,
    held_s=3.2,
    limit=LimitMet(limit="its own rate", left=0.0, until_s=0.45, rate_per_s=2.0),
    expires_s=160.0,
)


@pytest.mark.parametrize(
    ("report", "says"),
    [
        pytest.param(
            DeviceReport(name="a", entry=Entry()),
            [
                "a: not registered; a password of generation 1 counts all the same.",
                "Now: allowed.",
                "No gateway has seen it lately.",
            ],
            id="nobody has heard of it",
        ),
        pytest.param(
            DeviceReport(
                name="a",
                entry=Entry(Registered(2, 0.0, "line 4"), Revocation(2, 200.0, False, 1)),
                answers=(ClientAnswer(gateway="g1", connections=(CONNECTED,)),),
            ),
            [
                "a: registered since 1970-01-01 00:00:00 UTC, generation 2.",
                "note: line 4",
                "Now: allowed; passwords of generation 1 count until 1970-01-01 00:03:20 UTC.",
                "Connected to g1 from 192.0.2.7:1 as pump-1 (MQTT 5, derived, broker-1): 8,211 credits left, 2 "
                "subscriptions. 8 publishes wait, for 3.2 s. Limited by its own rate (2 a second): 0 left, the next "
                "may pass in 0.45 s. Its proof ends in 60 s.",
            ],
            id="it is held, and was given a new password",
        ),
        pytest.param(
            DeviceReport(
                name="a",
                entry=Entry(None, Revocation(2, 50.0, True, 2)),
                answers=(
                    ClientAnswer(gateway="g1", ended=Ended(reason="late", at_s=10.0, address="x:1")),
                    ClientAnswer(gateway="g2", ended=Ended(reason="revoked", at_s=60.0, address="x:2")),
                ),
            ),
            [
                "a: not registered.",
                "Now: revoked since 1970-01-01 00:00:50 UTC.",
                "Last refused or ended 1970-01-01 00:01:00 UTC, from x:2: revoked.",
            ],
            id="it is revoked, and the newest refusal counts",
        ),
    ],
)
def test_a_device_in_lines(report: DeviceReport, says: list[str]) -> None:
    assert lines(report, 100.0) == says
    html = report_html(report, 100.0)
    assert (" class='danger'" in html) is report.entry.is_revoked
    assert "data-at='100.000'" in html


def test_a_device_for_programs_and_what_it_calls_itself_is_only_text() -> None:
    nasty = msgspec.structs.replace(CONNECTED, client_id="<script>")
    report = DeviceReport(name="a", entry=Entry(), answers=(ClientAnswer(gateway="g1", connections=(nasty,)),))
    assert "<script>" not in report_html(report, 0.0)
    told = msgspec.json.decode(msgspec.json.encode(described_fully(report, 0.0)))
    assert told["gateways"][0]["connections"][0]["limit"]["until_s"] == 0.45
    assert (told["name"], told["registered"], told["revoked"]) == ("a", False, False)
