"""The method ``jwt``: which tokens are taken, and which tricks are not."""

import base64
import hashlib
import hmac
import json
import os
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from certificates import Authority
from tidegate.gateway.identity import verdicts
from tidegate.gateway.identity.judging import Accepted, Identities, Looked, Presented, Refused
from tidegate.gateway.identity.settings import IdentitySettings, JwtSettings
from tidegate.model.errors import UserError

NOW_S = 1_000_000.0
RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER_RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())
EC_384 = ec.generate_private_key(ec.SECP384R1())
ED_KEY = ed25519.Ed25519PrivateKey.generate()
SECRET = "s" * 40


def pem(key: Any) -> bytes:
    found: bytes = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return found


def token(key: Any, algorithm: str, headers: dict[str, Any] | None = None, **claims: Any) -> str:
    said = {"sub": "pump-1", "exp": NOW_S + 60, **claims}
    return jwt.encode({name: value for name, value in said.items() if value is not None}, key, algorithm, headers)


def shown(password: str | bytes, user: str = "") -> Presented:
    return Presented(user=user.encode(), password=password.encode() if isinstance(password, str) else password)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name, key in {"rsa": RSA_KEY, "ec": EC_KEY, "ed": ED_KEY}.items():
        (tmp_path / f"{name}.pem").write_bytes(pem(key))
    (tmp_path / "secret").write_text(SECRET + "\n")
    return tmp_path


def identities(files: Path, *keys: str, strict: bool = True, **settings: Any) -> Identities:
    paths = tuple(str(files / key) for key in keys)
    chosen = JwtSettings(keys=paths, **settings)
    return Identities(IdentitySettings(methods=("derived", "jwt"), jwt=chosen), None, lambda: NOW_S, strict=strict)


def look(judges: Identities) -> Looked:
    """Twice: a file that has changed counts when it stays as it is."""
    assert look_once(judges) == Looked()
    return look_once(judges)


def look_once(judges: Identities) -> Looked:
    return judges.look(NOW_S, lambda _: True)


def judged(judges: Identities, presented: Presented, now_s: float = NOW_S) -> Accepted | Refused:
    found = judges.judge(presented, now_s)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("key", "algorithm", "private"),
    [
        ("rsa.pem", "RS256", RSA_KEY),
        ("rsa.pem", "PS384", RSA_KEY),
        ("ec.pem", "ES256", EC_KEY),
        ("ed.pem", "EdDSA", ED_KEY),
    ],
)
def test_a_signed_token_proves_its_subject_until_it_expires(
    files: Path, key: str, algorithm: Any, private: Any
) -> None:
    judges = identities(files, key, algorithms=(algorithm,), leeway_s=5)
    found = judged(judges, shown(token(private, algorithm)))
    assert isinstance(found, Accepted)
    assert (found.name, found.method, found.expires_s) == ("pump-1", "jwt", NOW_S + 65)
    assert isinstance(judged(judges, shown(token(private, algorithm), "pump-1")), Accepted)
    assert judged(judges, shown(token(private, algorithm), "pump-2")) == verdicts.WRONG
    assert judged(judges, shown(token(private, algorithm)), NOW_S + 65) == verdicts.EXPIRED
    assert judges.still_allowed(found, NOW_S + 65) == verdicts.EXPIRED


def test_a_secret_works_for_who_wants_one(files: Path) -> None:
    judges = identities(files, secret=str(files / "secret"), algorithms=("HS256",))
    assert isinstance(judged(judges, shown(token(SECRET, "HS256"))), Accepted)
    assert judged(judges, shown(token("x" * 40, "HS256"))) == verdicts.WRONG


def unsigned() -> str:
    parts = ({"alg": "none", "typ": "JWT"}, {"sub": "pump-1", "exp": NOW_S + 60})
    return ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts) + "."


def hmac_by_public_key() -> str:
    """Signed with the public key as if it were a secret, which everybody could do."""
    key = pem(RSA_KEY)
    head, body = token(SECRET, "HS256").split(".")[:2]
    code = hmac.new(key, f"{head}.{body}".encode(), hashlib.sha256).digest()
    return f"{head}.{body}.{base64.urlsafe_b64encode(code).decode().rstrip('=')}"


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(unsigned(), id="no signature at all"),
        pytest.param(hmac_by_public_key(), id="a public key taken for a secret"),
        pytest.param(token(OTHER_RSA, "RS256"), id="somebody else's signature"),
        pytest.param(token(RSA_KEY, "RS512"), id="an algorithm that was not chosen"),
        pytest.param(token(EC_KEY, "ES256"), id="an algorithm for which there is no key"),
        pytest.param(token(RSA_KEY, "RS256", exp=None), id="a token without end"),
        pytest.param(token(RSA_KEY, "RS256", exp="tomorrow"), id="an end that is no time"),
        pytest.param(token(RSA_KEY, "RS256", nbf=NOW_S + 100), id="not yet"),
        pytest.param(token(RSA_KEY, "RS256", sub=None), id="no name"),
        pytest.param(token(RSA_KEY, "RS256", sub=""), id="an empty name"),
        pytest.param(token(RSA_KEY, "RS256", {"crit": ["x"], "x": 1}), id="something critical that nobody knows"),
        pytest.param("ey.ey.ey", id="nothing"),
        pytest.param("ey" + "A" * 40_000 + ".x.y", id="without end"),
        pytest.param(token(RSA_KEY, "RS256")[:-8], id="a signature that is cut"),
    ],
)
def test_a_token_that_proves_nothing_is_refused(files: Path, bad: str) -> None:
    judges = identities(files, "rsa.pem", secret=str(files / "secret"), algorithms=("RS256", "ES256", "HS256"))
    assert isinstance(judged(judges, shown(bad)), Refused)


@given(st.binary(max_size=60), st.binary(max_size=60), st.binary(max_size=60))
def test_no_bytes_raise(tmp_path_factory: pytest.TempPathFactory, head: bytes, body: bytes, end: bytes) -> None:
    directory = tmp_path_factory.mktemp("keys")
    (directory / "rsa.pem").write_bytes(PUBLIC)
    judges = identities(directory, "rsa.pem", algorithms=("RS256",))
    encoded = (base64.urlsafe_b64encode(one).rstrip(b"=") for one in (b'{"' + head, body, end))
    for password in (b".".join((b"ey" + head, body, end)), b".".join(encoded)):
        assert isinstance(judges.judge(shown(password), NOW_S), Refused)


PUBLIC = pem(RSA_KEY)


def signed(body: bytes) -> str:
    """Whatever it says, with a good signature."""
    return jwt.PyJWS().encode(body, SECRET, "HS256")


@pytest.mark.parametrize("claim", ["exp", "nbf"])
@pytest.mark.parametrize(
    "said",
    [
        pytest.param(b"1" + b"0" * 400, id="more than a float holds"),
        pytest.param(b"-1" + b"0" * 400, id="less than a float holds"),
        pytest.param(b"1" + b"0" * 5000, id="more digits than Python reads"),
        pytest.param(b"1e999", id="infinite by a long way"),
        pytest.param(b"Infinity", id="infinite"),
        pytest.param(b"-Infinity", id="infinitely long ago"),
        pytest.param(b"NaN", id="no number"),
        pytest.param(b"true", id="yes"),
        pytest.param(b"null", id="nothing"),
        pytest.param(b'"1000060"', id="a number as text"),
        pytest.param(b"[1000060]", id="a list"),
        pytest.param(b"{}", id="a table"),
        pytest.param(b"[" * 5000 + b"]" * 5000, id="nested as deeply as fits"),
    ],
)
def test_a_time_that_is_none_is_refused(files: Path, claim: str, said: bytes) -> None:
    judges = identities(files, secret=str(files / "secret"), algorithms=("HS256",))
    good = {"exp": b"1000060", "nbf": b"0"}
    for times, expected in ((good, Accepted), ({**good, claim: said}, Refused)):
        body = b'{"sub": "pump-1", "exp": %b, "nbf": %b}' % (times["exp"], times["nbf"])
        assert isinstance(judged(judges, shown(signed(body))), expected)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.integers(10**308, 10**320) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
CLAIMS = st.sampled_from(["sub", "exp", "nbf", "iat", "iss", "aud", "jti", "device"])


@given(
    said=st.dictionaries(CLAIMS, JSON),
    head=st.dictionaries(st.sampled_from(["kid", "typ", "crit", "b64", "x5c"]), JSON),
)
def test_no_claims_raise_although_they_are_signed(
    tmp_path_factory: pytest.TempPathFactory, said: dict[str, Any], head: dict[str, Any]
) -> None:
    directory = tmp_path_factory.mktemp("keys")
    (directory / "secret").write_text(SECRET)
    for settings in ({}, {"issuer": "us", "audience": "tidegate", "name_claim": "device"}):
        judges = identities(directory, secret=str(directory / "secret"), algorithms=("HS256",), **settings)
        parts = ({"alg": "HS256", **head}, {"sub": "pump-1", "exp": NOW_S + 60, **said})
        text = ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)
        code = hmac.new(SECRET.encode(), text.encode(), hashlib.sha256).digest()
        found = judges.judge(shown(f"{text}.{base64.urlsafe_b64encode(code).decode().rstrip('=')}"), NOW_S)
        assert isinstance(found, Accepted | Refused)


def test_issuer_and_audience_are_looked_at_where_they_are_chosen(files: Path) -> None:
    judges = identities(files, "rsa.pem", algorithms=("RS256",), issuer="us", audience="tidegate", name_claim="device")
    good = {"iss": "us", "aud": ["tidegate", "x"], "device": "valve-1"}
    found = judged(judges, shown(token(RSA_KEY, "RS256", **good)))
    assert isinstance(found, Accepted)
    assert found.name == "valve-1"
    for bad in ({"iss": "them"}, {"aud": "x"}, {"aud": None}, {"iss": None}, {"device": 7}):
        assert judged(judges, shown(token(RSA_KEY, "RS256", **{**good, **bad}))) == verdicts.WRONG
    other = identities(files, "rsa.pem", algorithms=("RS256",))
    assert isinstance(judged(other, shown(token(RSA_KEY, "RS256", aud="whoever"))), Accepted)


def test_a_set_of_keys_finds_the_one_that_is_named(files: Path) -> None:
    keys = [
        {**json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key())), "kid": name}
        for name, key in {"old": OTHER_RSA, "new": RSA_KEY}.items()
    ]
    (files / "jwks.json").write_text(json.dumps({"keys": keys}))
    judges = identities(files, "jwks.json", algorithms=("RS256",))
    assert isinstance(judged(judges, shown(token(RSA_KEY, "RS256", {"kid": "new"}))), Accepted)
    assert isinstance(judged(judges, shown(token(RSA_KEY, "RS256"))), Accepted)
    assert judged(judges, shown(token(RSA_KEY, "RS256", {"kid": "old"}))) == verdicts.WRONG


def test_a_certificate_is_as_good_as_its_key(tmp_path: Path) -> None:
    _, private = Authority(tmp_path).sign("signer")
    judges = identities(tmp_path, "signer.pem", algorithms=("ES256",))
    assert isinstance(judged(judges, shown(token(Path(private).read_bytes(), "ES256"))), Accepted)


def test_keys_are_read_again_when_they_change(files: Path) -> None:
    judges = identities(files, "rsa.pem", algorithms=("RS256",))
    path = files / "rsa.pem"
    path.write_bytes(b"oops")
    os.utime(path, ns=(1, 1))
    assert "rsa.pem holds no public key" in look(judges).sentences[0]
    assert isinstance(judged(judges, shown(token(RSA_KEY, "RS256"))), Accepted)
    path.write_bytes(pem(OTHER_RSA))
    assert look(judges).everybody
    assert judged(judges, shown(token(RSA_KEY, "RS256"))) == verdicts.WRONG
    assert isinstance(judged(judges, shown(token(OTHER_RSA, "RS256"))), Accepted)


def test_keys_that_are_damaged_when_a_process_is_replaced_turn_their_method_off(files: Path) -> None:
    path = files / "rsa.pem"
    path.write_bytes(b"oops")
    judges = identities(files, "rsa.pem", algorithms=("RS256",), strict=False)
    assert "rsa.pem holds no public key" in look_once(judges).sentences[0]
    assert judged(judges, shown(token(RSA_KEY, "RS256"))) == verdicts.KEYS_NOT_KNOWN
    assert judged(judges, shown("something else")) == verdicts.NOBODY_KNOWS
    path.write_bytes(pem(RSA_KEY))
    assert look(judges).everybody
    assert isinstance(judged(judges, shown(token(RSA_KEY, "RS256"))), Accepted)


def private_pem(key: Any) -> bytes:
    found: bytes = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return found


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "holds no public key: give a PEM file or a JWKS file"),
        (private_pem(EC_KEY), "holds a private key: give the public one"),
        (b"{}", "is no set of keys"),
        (b'{"keys": []}', "holds no key"),
        (b'{"keys": [7]}', "is no set of keys"),
        (b'{"keys": [{"kty": "oct", "k": "AAAA"}]}', "holds a secret"),
        (b'{"keys": ' + b"[" * 100_000, "is no set of keys"),
        (pem(ec.generate_private_key(ec.SECP256K1())), "of a kind that signs no tokens"),
        (pem(rsa.generate_private_key(public_exponent=65537, key_size=1024)), "an RSA key of 1024 bits"),
    ],
)
def test_a_file_without_a_key_is_said(tmp_path: Path, content: bytes, sentence: str) -> None:
    (tmp_path / "key").write_bytes(content)
    with pytest.raises(UserError, match=sentence) as caught:
        identities(tmp_path, "key")
    assert str(tmp_path / "key") in str(caught.value)


@pytest.mark.parametrize("content", [b"short", PUBLIC])
def test_a_secret_that_is_none_is_said(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "secret").write_bytes(content)
    with pytest.raises(UserError, match="holds no secret of at least 64 bytes"):
        identities(tmp_path, secret=str(tmp_path / "secret"), algorithms=("HS256", "HS512"))
