"""Keys for signed tokens, from PEM files, JWKS files and a file with a secret; each fits some algorithms and no other.

A secret is never taken for a public key, nor the other way round: the kind of a key says which algorithms it fits.
"""

import json
from collections.abc import Sequence
from typing import Any

import jwt
import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from cryptography.x509 import load_pem_x509_certificate

from tidegate.model.errors import UserError

KEYS_MAX = 64
RSA_BITS_MIN = 2048
_RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_CURVES = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}
_SECRET_BYTES_MIN = {"HS256": 32, "HS384": 48, "HS512": 64}
_PRIVATE = b"PRIVATE KEY-----"


class TokenKey(msgspec.Struct, frozen=True, kw_only=True):
    """``id`` is what a JWKS file calls it; a token may name it."""

    key: Any
    algorithms: tuple[str, ...]
    id: str | None = None

    def __repr__(self) -> str:
        return f"TokenKey(id={self.id!r}, algorithms={self.algorithms!r})"


def read_keys(
    paths: Sequence[str], secret: str, algorithms: Sequence[str], contents: Sequence[bytes]
) -> list[TokenKey]:
    """``contents`` are those of the paths, and behind them that of the secret, if there is one."""
    found: list[TokenKey] = []
    for path, content in zip(paths, contents, strict=False):
        found += _public(path, content)
    if secret:
        found.append(_secret(secret, contents[-1], algorithms))
    if len(found) > KEYS_MAX:
        raise UserError(f"There are {len(found)} keys for tokens: have at most {KEYS_MAX}.")
    return found


def _public(path: str, content: bytes) -> list[TokenKey]:
    if content.lstrip().startswith(b"{"):
        return _key_set(path, content)
    if _PRIVATE in content:
        raise UserError(f"{path} holds a private key: give the public one (openssl pkey -pubout).")
    try:
        if b"BEGIN CERTIFICATE" in content:
            key: Any = load_pem_x509_certificate(content).public_key()
        else:
            key = load_pem_public_key(content)
    except (ValueError, UnsupportedAlgorithm):
        raise UserError(f"{path} holds no public key: give a PEM file or a JWKS file.") from None
    return [TokenKey(key=key, algorithms=_fitting(path, key))]


def _key_set(path: str, content: bytes) -> list[TokenKey]:
    try:
        keys = json.loads(content)["keys"]
        found = [_of_set(path, one) for one in keys]
    except (ValueError, TypeError, KeyError, RecursionError, jwt.PyJWTError):
        raise UserError(f"{path} is no set of keys (JWKS) that can be used: give another file.") from None
    if not found:
        raise UserError(f"{path} holds no key: give a set of keys (JWKS) with one.")
    return found


def _of_set(path: str, one: Any) -> TokenKey:
    if not isinstance(one, dict):
        raise TypeError("a key is a table")
    if one.get("kty") == "oct" or "d" in one:
        raise UserError(f"{path} holds a secret: give a set of public keys (JWKS).")
    key = jwt.PyJWK.from_dict(one).key
    key_id = one.get("kid")
    return TokenKey(key=key, algorithms=_fitting(path, key), id=key_id if isinstance(key_id, str) else None)


def _fitting(path: str, key: Any) -> tuple[str, ...]:
    if isinstance(key, rsa.RSAPublicKey):
        if key.key_size < RSA_BITS_MIN:
            raise UserError(f"{path} holds an RSA key of {key.key_size} bits: take one of at least {RSA_BITS_MIN}.")
        return _RSA
    if isinstance(key, ec.EllipticCurvePublicKey) and key.curve.name in _CURVES:
        return (_CURVES[key.curve.name],)
    if isinstance(key, ed25519.Ed25519PublicKey | ed448.Ed448PublicKey):
        return ("EdDSA",)
    raise UserError(f"{path} holds a key of a kind that signs no tokens: take RSA, P-256, P-384, P-521 or Ed25519.")


def _secret(path: str, content: bytes, algorithms: Sequence[str]) -> TokenKey:
    secret = content.strip()
    shared = tuple(one for one in algorithms if one in _SECRET_BYTES_MIN)
    least = max((_SECRET_BYTES_MIN[one] for one in shared), default=0)
    if b"-----BEGIN" in secret or len(secret) < least:
        raise UserError(f"{path} holds no secret of at least {least} bytes: make one (openssl rand -base64 {least}).")
    return TokenKey(key=secret, algorithms=shared)
