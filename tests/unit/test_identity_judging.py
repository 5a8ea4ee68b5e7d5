"""The methods in their order: who is let in, by which, with which rights, and who has to go."""

import asyncio
from functools import partial
from typing import Any

import pytest

from tidegate.gateway.identity import revocations, verdicts
from tidegate.gateway.identity.certificates import certificate_of
from tidegate.gateway.identity.judging import Accepted, Certificate, Identities, Presented, Refused
from tidegate.gateway.identity.settings import BrokerSettings, CertificateSettings, IdentitySettings
from tidegate.gateway.identity.verdicts import REFUSALS, Later
from tidegate.model.credentials import Key, Keys, password_of
from tidegate.model.identity import Access, Application, Patterns
from tidegate.model.registration import Revocation, shard_of

KEY, NEXT = Key(id="k1", secret=bytes(32)), Key(id="k2", secret=bytes(range(32)))
KEYS = Keys(current=KEY)
NOW_S = 1_000.0
APPLICATIONS = (
    Application(name="analytics", subscribes=("telemetry/#",)),
    Application(name="bridge", speaks_for=("pump-*",), methods=("certificate",)),
)


def identities(keys: Keys | None = KEYS, **settings: Any) -> Identities:
    made = Identities(IdentitySettings(**settings), Access(applications=APPLICATIONS), lambda: NOW_S)
    made.keys_changed(keys)
    return made


def presented(user: str | None, password: str | None = None, **more: Any) -> Presented:
    def encoded(text: str | None) -> bytes | None:
        return None if text is None else text.encode()

    return Presented(user=encoded(user), password=encoded(password), **more)


def derived(name: str, generation: int = 1, key: Key = KEY, user: str | None = "", **more: Any) -> Presented:
    return presented(name if user == "" else user, password_of(key, name, generation), **more)


def accepted(verdict: object) -> Accepted:
    assert isinstance(verdict, Accepted), verdict
    return verdict


def revoke(judges: Identities, name: str, revocation: Revocation | None) -> set[str]:
    return judges.revoked_changed(shard_of(name), {} if revocation is None else {name: revocation})


def everybody(_name: str) -> bool:
    return True


# -- derived


def test_a_derived_password_proves_the_user_name() -> None:
    found = accepted(identities().judge(derived("pump-1", 3), NOW_S))
    assert (found.name, found.method, found.generation, found.key_id) == ("pump-1", "derived", 3, "k1")
    assert (found.is_application, found.passes_credentials, found.expires_s) == (False, False, None)
    assert found.rights.may_publish(b"telemetry/pump-1/x")
    assert not found.rights.may_publish(b"telemetry/pump-2/x")


def test_without_a_user_name_it_proves_the_client_id() -> None:
    for user in (None, "", b""):
        shown = Presented(user=None if user is None else b"", password=password_of(KEY, "d", 1).encode(), client_id="d")
        assert accepted(identities().judge(shown, NOW_S)).name == "d"


@pytest.mark.parametrize(
    ("shown", "refused"),
    [
        pytest.param(derived("pump-1", user="pump-2"), verdicts.WRONG, id="somebody else's password"),
        pytest.param(presented("pump-1", "tg1.k1.1.x"), verdicts.WRONG, id="a wrong password"),
        pytest.param(derived("pump-1", key=NEXT), verdicts.WRONG, id="of a key that is not ours"),
        pytest.param(Presented(user=b"\xff", password=b"tg1.k1.1.x"), verdicts.WRONG, id="a user name that is no text"),
        pytest.param(presented("pump-1", "secret"), verdicts.NOBODY_KNOWS, id="some other password"),
        pytest.param(presented(None), verdicts.NOBODY_KNOWS, id="nothing at all"),
        pytest.param(derived("a/b"), verdicts.NO_NAME, id="a name that is two levels"),
        pytest.param(derived("*"), verdicts.NO_NAME, id="a name that is a wildcard to the broker"),
        pytest.param(derived("bridge"), verdicts.NOT_BY_THIS_METHOD, id="an application that is proven otherwise"),
    ],
)
def test_whoever_is_not_known_for_certain_is_refused(shown: Presented, refused: Refused) -> None:
    assert identities().judge(shown, NOW_S) == refused


def test_while_no_key_is_known_nobody_is_let_in_and_everybody_may_come_again() -> None:
    judges = identities(keys=None)
    assert judges.judge(derived("pump-1"), NOW_S) == verdicts.KEYS_NOT_KNOWN
    assert verdicts.KEYS_NOT_KNOWN.code == 0x88
    judges.keys_changed(KEYS)
    accepted(judges.judge(derived("pump-1"), NOW_S))
    judges.keys_changed(None)
    accepted(judges.judge(derived("pump-1"), NOW_S))


def test_an_application_has_rights_of_its_own_and_none_of_a_device() -> None:
    found = accepted(identities().judge(derived("analytics"), NOW_S))
    assert found.is_application
    assert found.rights.may_subscribe(b"telemetry/+/x")
    assert not found.rights.may_publish(b"telemetry/analytics")


# -- certificate and broker


def test_a_certificate_proves_its_name_and_ends() -> None:
    judges = identities(methods=("derived", "certificate"))
    shown = Certificate(common_name="bridge", expires_s=NOW_S + 60)
    found = accepted(judges.judge(Presented(certificate=shown), NOW_S))
    assert (found.name, found.method, found.is_application, found.expires_s) == ("bridge", "certificate", True, 1_060)
    assert found.rights.may_publish(b"telemetry/pump-4")
    assert judges.judge(Presented(certificate=shown), NOW_S + 60) == verdicts.EXPIRED
    assert judges.still_allowed(found, NOW_S + 61) == verdicts.EXPIRED


def test_an_earlier_method_that_knows_the_client_goes_before_its_certificate() -> None:
    judges, shown = identities(methods=("derived", "certificate")), Certificate(common_name="line-7")
    assert accepted(judges.judge(derived("pump-1", certificate=shown), NOW_S)).name == "pump-1"
    assert judges.judge(presented("pump-1", "tg1.k1.1.x", certificate=shown), NOW_S) == verdicts.WRONG
    assert accepted(judges.judge(presented("pump-1", "other", certificate=shown), NOW_S)).name == "line-7"
    first = identities(methods=("certificate", "derived"))
    assert accepted(first.judge(derived("pump-1", certificate=shown), NOW_S)).name == "line-7"


@pytest.mark.parametrize(
    ("name_from", "name"), [("common_name", "cn"), ("dns", "d1"), ("uri", "urn:x"), ("email", "a@b")]
)
def test_where_the_name_stands_in_a_certificate_is_chosen(name_from: Any, name: str) -> None:
    settings = {"methods": ("certificate",), "certificate": CertificateSettings(name_from=name_from)}
    peer = {
        "subject": ((("organizationName", "o"),), (("commonName", "cn"),)),
        "subjectAltName": (("DNS", "d1"), ("DNS", "d2"), ("URI", "urn:x"), ("email", "a@b"), ("IP Address", "::1")),
        "notAfter": "Nov 18 00:00:00 2026 GMT",
    }
    shown = certificate_of(peer)
    assert shown is not None
    assert shown.expires_s == 1_794_960_000
    assert accepted(identities(**settings).judge(Presented(certificate=shown), NOW_S)).name == name
    assert identities(**settings).judge(Presented(certificate=Certificate()), NOW_S) == verdicts.NOBODY_KNOWS
    assert certificate_of({}) is None


def test_the_broker_decides_about_whoever_has_a_name() -> None:
    found = accepted(identities(methods=("broker",)).judge(presented("pump-1", "secret"), NOW_S))
    assert found.passes_credentials
    assert found.rights.may_publish(b"telemetry/pump-1")
    assert not found.rights.may_publish(b"telemetry/pump-2")
    judges = identities(methods=("broker",))
    assert judges.judge(presented(None, client_id="pump-1"), NOW_S) == verdicts.WRONG
    assert judges.judge(presented("analytics", "x"), NOW_S) == verdicts.NOT_BY_THIS_METHOD


def test_the_broker_may_decide_about_topics_as_well() -> None:
    judges = identities(methods=("broker",), broker=BrokerSettings(decides_topics=True))
    found = accepted(judges.judge(presented(None, client_id="pump-1"), NOW_S))
    assert (found.name, found.rights.may_publish(b"any/thing"), found.rights.may_subscribe(b"#")) == (
        "pump-1",
        True,
        True,
    )
    assert not found.rights.may_subscribe(b"$SYS/#")


# -- what changes


@pytest.mark.parametrize(
    ("revocation", "generation", "allowed"),
    [
        pytest.param(Revocation(2, NOW_S), 1, False, id="a generation that is taken back"),
        pytest.param(Revocation(2, NOW_S), 2, True, id="the next generation"),
        pytest.param(Revocation(2, NOW_S + 1), 1, True, id="not yet"),
        pytest.param(Revocation(3, NOW_S + 1, False, 2), 1, False, id="not yet, but before"),
        pytest.param(Revocation(2, NOW_S, True), 7, False, id="everywhere"),
    ],
)
def test_a_revocation_counts_for_who_comes_and_for_who_is_there(
    revocation: Revocation, generation: int, allowed: bool
) -> None:
    judges = identities()
    before = accepted(judges.judge(derived("d", generation), NOW_S))
    assert revoke(judges, "d", revocation) == {"d"}
    came, stayed = judges.judge(derived("d", generation), NOW_S), judges.still_allowed(before, NOW_S)
    if allowed:
        assert accepted(came).name == accepted(stayed).name == "d"
    else:
        assert came == stayed == verdicts.REVOKED
    assert revoke(judges, "d", None) == {"d"}
    accepted(judges.judge(derived("d", generation), NOW_S))
    assert revoke(judges, "d", None) == set()


def test_a_name_that_is_revoked_everywhere_is_refused_by_every_method() -> None:
    judges = identities(methods=("certificate", "broker"))
    shown = Presented(certificate=Certificate(common_name="d"))
    before = accepted(judges.judge(shown, NOW_S))
    revoke(judges, "d", Revocation(2, 0.0))
    accepted(judges.still_allowed(before, NOW_S))  # a generation is a derived password's
    revoke(judges, "d", Revocation(2, 0.0, True))
    assert judges.still_allowed(before, NOW_S) == judges.judge(shown, NOW_S) == verdicts.REVOKED
    assert judges.judge(presented("d", "x"), NOW_S) == verdicts.REVOKED


def test_only_names_about_which_something_else_is_said_are_judged_again() -> None:
    judges, shard = identities(), "00"
    a, b = Revocation(2, 0.0), Revocation(3, 0.0)
    assert judges.revoked_changed(shard, {"a": a, "b": a}) == {"a", "b"}
    assert judges.revoked_changed(shard, {"a": a, "b": b, "c": a}) == {"b", "c"}
    assert judges.revoked_changed(shard, {"c": a}) == {"a", "b"}


def test_a_look_names_whose_revocation_has_come_into_force() -> None:
    judges = identities()
    revoke(judges, "d", Revocation(2, NOW_S + 10))
    assert judges.look(NOW_S + 9, everybody).names == frozenset()
    assert judges.look(NOW_S + 10, everybody).names == {"d"}
    assert judges.look(NOW_S + 11, everybody).names == frozenset()


def test_a_look_names_only_those_who_are_here() -> None:
    judges = identities()
    revoke(judges, "here", Revocation(2, NOW_S + 10))
    revoke(judges, "elsewhere", Revocation(2, NOW_S + 10))
    assert judges.look(NOW_S + 10, {"here"}.__contains__).names == {"here"}
    assert judges.look(NOW_S + 10, everybody).names == frozenset()


def test_a_fleet_that_is_due_at_one_moment_is_named_in_parts_and_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(revocations, "DUE_MAX", 20)
    monkeypatch.setattr(revocations, "GONE_THROUGH_MAX", 50)
    names = {f"d-{number}" for number in range(200)}
    many = revocations.Revocations()
    many.changed("00", dict.fromkeys(names, Revocation(2, 10.0)), 0.0)
    many.changed("01", {"later": Revocation(2, 20.0)}, 0.0)
    assert many.due(9.0, everybody) == set()
    parts = [many.due(10.0, everybody) for _ in range(10)]
    assert {len(part) for part in parts} == {20}
    assert set().union(*parts) == names
    assert many.due(10.0, everybody) == set()
    asked: list[str] = []

    def nobody(name: str) -> bool:
        asked.append(name)
        return False

    many.changed("00", dict.fromkeys(names, Revocation(3, 15.0)), 10.0)
    assert many.due(15.0, nobody) == set()
    assert len(asked) == 50, "who is not here costs time, too"
    for _ in range(3):
        many.due(15.0, nobody)
    assert set(asked) == names
    assert many.due(20.0, everybody) == {"later"}


def test_when_the_rotation_of_a_key_is_finished_who_used_the_old_one_has_to_go() -> None:
    judges = identities()
    old = accepted(judges.judge(derived("d"), NOW_S))
    judges.keys_changed(Keys(current=NEXT, previous=KEY))
    new = accepted(judges.judge(derived("d", key=NEXT), NOW_S))
    assert accepted(judges.still_allowed(old, NOW_S)).name == "d"
    judges.keys_changed(Keys(current=NEXT))
    assert judges.still_allowed(old, NOW_S) == verdicts.REVOKED
    assert accepted(judges.still_allowed(new, NOW_S)).key_id == "k2"


def test_other_access_gives_live_connections_other_rights() -> None:
    judges = identities()
    pump, analytics = (accepted(judges.judge(derived(name), NOW_S)) for name in ("pump-1", "analytics"))
    other = Application(name="pump-1", publishes=("alarms",))
    judges.access_changed(Access(devices=Patterns(publishes=("d/{device}",)), applications=(other,)))
    found = accepted(judges.still_allowed(pump, NOW_S))
    assert (found.is_application, found.rights.may_publish(b"alarms")) == (True, True)
    found = accepted(judges.still_allowed(analytics, NOW_S))
    assert (found.is_application, found.rights.may_publish(b"d/analytics")) == (False, True)
    judges.access_changed(Access(applications=(Application(name="pump-1", methods=("jwt",)),)))
    assert judges.still_allowed(pump, NOW_S) == verdicts.NOT_BY_THIS_METHOD
    judges.access_changed(None)
    assert accepted(judges.still_allowed(pump, NOW_S)).rights.may_publish(b"telemetry/pump-1")


def test_a_hundred_thousand_revocations_are_found_by_name() -> None:
    judges = identities()
    names = [f"pump-{number}" for number in range(100_000)]
    shards: dict[str, dict[str, Revocation]] = {}
    for name in names:
        shards.setdefault(shard_of(name), {})[name] = Revocation(2, 0.0)
    assert sum(len(judges.revoked_changed(shard, revoked)) for shard, revoked in shards.items()) == len(names)
    assert {judges.judge(derived(name), NOW_S) for name in names[::10_000]} == {verdicts.REVOKED}
    accepted(judges.judge(derived("valve"), NOW_S))


def test_what_needs_no_waiting_is_the_same_slowly() -> None:
    judges = identities()
    for shown in (derived("pump-1"), presented("x", "y")):
        slowly, quickly = asyncio.run(judges.judge_slowly(shown)), judges.judge(shown, NOW_S)
        assert type(slowly) is type(quickly)


# -- what is told


def test_a_refusal_tells_nobody_whether_there_is_such_a_name() -> None:
    assert verdicts.WRONG.sentence == verdicts.NOBODY_KNOWS.sentence
    assert len({one.reason for one in REFUSALS}) == len(REFUSALS)
    assert {one.code for one in REFUSALS} == {0x86, 0x87, 0x88, 0x97}


def test_a_password_is_not_shown() -> None:
    shown = presented("pump-1", "hush")
    assert "hush" not in repr(shown) + repr(Later(partial(print, shown.password)))
