"""Derived passwords: made, verified, and taken back by their generation."""

import base64
import hashlib
import hmac

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.model.credentials import (
    GENERATION_MAX,
    Key,
    Keys,
    Proof,
    is_derived,
    newest,
    password_of,
    verify,
)
from tidegate.model.errors import UserError

KEY = Key(id="k1", secret=bytes(range(32)))
OTHER = Key(id="k2", secret=bytes(32))
KEYS = Keys(current=KEY)
PASSWORD = password_of(KEY, "pump-1", 3)


def test_a_password_is_what_the_documentation_says_so_that_a_factory_can_make_it() -> None:
    said = b"tidegate device\0k1\x003\0pump-1"
    code = base64.urlsafe_b64encode(hmac.new(KEY.secret, said, hashlib.sha256).digest()[:18]).decode()
    assert f"tg1.k1.3.{code}" == PASSWORD
    assert len(code) == 24


def test_a_right_password_says_its_key_and_generation() -> None:
    assert verify(KEYS, "pump-1", PASSWORD.encode()) == Proof("k1", 3)


@pytest.mark.parametrize(
    ("name", "password"),
    [
        pytest.param("pump-2", PASSWORD, id="of another device"),
        pytest.param("pump-1", PASSWORD.replace(".3.", ".4."), id="of another generation"),
        pytest.param("pump-1", PASSWORD.replace(".3.", ".03."), id="a generation with a zero before it"),
        pytest.param("pump-1", PASSWORD.replace(".3.", ".+3."), id="a generation with a sign"),
        pytest.param("pump-1", PASSWORD.replace(".3.", ".."), id="without a generation"),
        pytest.param("pump-1", PASSWORD.replace("k1", "k2"), id="of a key that is not known"),
        pytest.param("pump-1", PASSWORD.replace("tg1", "tg2"), id="of another scheme"),
        pytest.param("pump-1", PASSWORD[:-1], id="cut"),
        pytest.param("pump-1", PASSWORD + "A", id="longer"),
        pytest.param("pump-1", PASSWORD + ".x", id="with a part more"),
        pytest.param("pump-1", "tg1.k1.3.", id="without a code"),
        pytest.param("pump-1", f"tg1.k1.{10**40}.{PASSWORD[-24:]}", id="a generation without end"),
        pytest.param("pump-1", "", id="empty"),
    ],
)
def test_any_other_password_proves_nothing(name: str, password: str) -> None:
    assert verify(KEYS, name, password.encode()) is None


@given(st.text(), st.binary())
def test_no_bytes_raise_or_prove_anything(name: str, password: bytes) -> None:
    for given_password in (password, b"tg1.k1.1." + password, b"tg1." + password):
        assert verify(KEYS, name, given_password) is None


@given(st.text(), st.integers(1, GENERATION_MAX), st.text(), st.integers(1, GENERATION_MAX))
def test_a_password_proves_its_own_name_and_generation_alone(name: str, one: int, other: str, two: int) -> None:
    password = password_of(KEY, name, one).encode()
    assert is_derived(password)
    assert verify(KEYS, name, password) == Proof("k1", one)
    assert verify(KEYS, other, password) == (Proof("k1", one) if other == name else None)
    assert (password_of(KEY, other, two).encode() == password) == ((other, two) == (name, one))


def test_two_keys_count_while_one_is_rotated_and_one_afterwards() -> None:
    old, new = password_of(KEY, "d", 1).encode(), password_of(OTHER, "d", 1).encode()
    rotating, finished = Keys(current=OTHER, previous=KEY), Keys(current=OTHER)
    assert [verify(rotating, "d", one) for one in (old, new)] == [Proof("k1", 1), Proof("k2", 1)]
    assert [verify(finished, "d", one) for one in (old, new)] == [None, Proof("k2", 1)]
    assert (rotating.has("k1"), finished.has("k1")) == (True, False)


def test_two_keys_of_one_id_are_refused() -> None:
    with pytest.raises(UserError, match="Both keys of the installation are called k1"):
        Keys(current=KEY, previous=Key(id="k1", secret=bytes(32)))


def test_nobody_sees_a_secret_by_looking_at_a_key() -> None:
    shown = repr(Keys(current=KEY, previous=OTHER)) + str(KEY) + repr(KEY.__rich_repr__())
    assert "secret" not in shown
    assert repr(KEY) == "Key(id='k1')"
    assert msgspec.json.decode(msgspec.json.encode(KEYS), type=Keys) == KEYS, "but it can be kept"


@pytest.mark.parametrize("content", [b'{"id":"K 1","secret":"AAAA"}', b'{"id":"k","secret":"AAAA"}'])
def test_a_key_that_is_none_is_not_read(content: bytes) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(content, type=Key)


ROTATING = KEYS.rotated(OTHER)
OF_BEFORE = [Keys(current=KEY), Keys(current=OTHER, previous=KEY), Keys(current=OTHER)]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        pytest.param(KEYS, ROTATING, id="a rotation has begun"),
        pytest.param(ROTATING, ROTATING.finished(), id="a rotation is finished"),
        pytest.param(KEYS, ROTATING.finished(), id="a whole rotation"),
        pytest.param(ROTATING.finished(), ROTATING.finished().rotated(KEY), id="a key that was there before"),
        pytest.param(OF_BEFORE[0], OF_BEFORE[1], id="without revisions, a rotation has begun"),
        pytest.param(OF_BEFORE[1], OF_BEFORE[2], id="without revisions, a rotation is finished"),
        pytest.param(KEYS, KEYS, id="the same"),
    ],
)
def test_of_two_copies_of_the_keys_the_newer_counts_wherever_it_stands(older: Keys, newer: Keys) -> None:
    assert newest(older, newer) == newest(newer, older) == newer


def test_keys_of_which_nobody_knows_the_newer_are_both_kept() -> None:
    with pytest.raises(UserError, match="neither says which is newer"):
        newest(OF_BEFORE[0], OF_BEFORE[2])


def test_keys_of_before_there_were_revisions_are_read() -> None:
    content = msgspec.json.encode({"current": KEY})
    assert msgspec.json.decode(content, type=Keys) == KEYS
