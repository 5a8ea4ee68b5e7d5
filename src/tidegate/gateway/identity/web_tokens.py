"""The method ``jwt``: a signed token in the place of the password. Who signs it is trusted with the names in it."""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import jwt

from tidegate.gateway.identity.files import Reread, WatchedFiles
from tidegate.gateway.identity.methods import Answer, Plain
from tidegate.gateway.identity.settings import JwtSettings
from tidegate.gateway.identity.token_keys import TokenKey, read_keys
from tidegate.gateway.identity.verdicts import EXPIRED, KEYS_NOT_KNOWN, WRONG, Known, Presented, Refused

TOKEN_BYTES_MAX = 16_384
# Not every version of the library that may be installed says of what is nested too deeply that it is no token.
_NO_TOKEN = (jwt.InvalidTokenError, RecursionError)


class WebTokens(Plain):
    def __init__(self, settings: JwtSettings, *, strict: bool = True) -> None:
        self._settings = settings
        paths = [*settings.keys, *([settings.secret] if settings.secret else [])]
        read = partial(read_keys, settings.keys, settings.secret, settings.algorithms)
        self._keys = WatchedFiles(paths, read, strict=strict)
        # The time is the caller's: it is looked at here, not there.
        self._options: Any = {
            "require": ["exp"],
            "verify_exp": False,
            "verify_nbf": False,
            "verify_iat": False,
            "verify_aud": bool(settings.audience),
        }

    def find(self, presented: Presented, now_s: float) -> Answer:
        password = presented.password
        if password is None or not looks_like_token(password):
            return None
        if self._keys.value is None:
            return KEYS_NOT_KNOWN
        claims = self._claims(password, self._keys.value) if len(password) <= TOKEN_BYTES_MAX else None
        if claims is None:
            return WRONG
        name = claims.get(self._settings.name_claim)
        if not isinstance(name, str) or presented.user_name not in ("", name):
            return WRONG
        return self._timed(name, claims, now_s)

    def look(self) -> Reread:
        return self._keys.look()

    def _claims(self, token: bytes, keys: Sequence[TokenKey]) -> dict[str, Any] | None:
        """What a token says that one of the keys has signed."""
        try:
            header = jwt.get_unverified_header(token)
        except _NO_TOKEN:
            return None
        algorithm, key_id = header.get("alg"), header.get("kid")
        if algorithm not in self._settings.algorithms:
            return None
        for key in keys:
            if algorithm in key.algorithms and (key.id is None or key_id is None or key.id == key_id):
                claims = self._signed(token, key, str(algorithm))
                if claims is not None:
                    return claims
        return None

    def _signed(self, token: bytes, key: TokenKey, algorithm: str) -> dict[str, Any] | None:
        settings = self._settings
        try:
            found: dict[str, Any] = jwt.decode(
                token,
                key.key,
                algorithms=[algorithm],
                issuer=settings.issuer or None,
                audience=settings.audience or None,
                options=self._options,
            )
        except _NO_TOKEN:
            return None
        return found

    def _timed(self, name: str, claims: Mapping[str, Any], now_s: float) -> Known | Refused:
        ends_s, begins_s = _moment(claims.get("exp")), _moment(claims.get("nbf", 0))
        if ends_s is None or begins_s is None:
            return WRONG
        ends_s += self._settings.leeway_s
        if now_s >= ends_s:
            return EXPIRED
        return WRONG if now_s < begins_s - self._settings.leeway_s else Known(name=name, expires_s=ends_s)


def looks_like_token(password: bytes) -> bool:
    return password.startswith(b"ey") and password.count(b".") == 2


def _moment(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        moment_s = float(value)
    except OverflowError:  # JSON's whole numbers have no bound
        return None
    return moment_s if math.isfinite(moment_s) else None
