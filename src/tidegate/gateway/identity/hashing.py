"""Hashed passwords as Mosquitto keeps them, so that a user base can be carried over and back.

::

    $7$<iterations>$<salt>$<hash>    PBKDF2-HMAC-SHA512(password, salt, iterations)
    $6$<salt>$<hash>                 SHA512(password salt)

Salt and hash are base64.
"""

import base64
import hashlib
import hmac
import re
import secrets

import msgspec

ITERATIONS = 20_000  # about ten milliseconds: once per connection, and never again for a password that was right
_SALT_BYTES = 12
# A hash of 64 bytes; at most 10 million iterations, less one.
_FORM = re.compile(
    r"\$(?:7\$([1-9][0-9]{0,6})|6)\$((?:[A-Za-z0-9+/]{4}){1,64}(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?)\$([A-Za-z0-9+/]{86}==)"
)


class Hashed(msgspec.Struct, frozen=True):
    """``iterations`` is 0 for the plain hash."""

    iterations: int
    salt: bytes
    digest: bytes

    def __repr__(self) -> str:
        return f"Hashed(iterations={self.iterations})"

    def fits(self, password: bytes) -> bool:
        """It takes as long as the hash wants it to: not for an event loop."""
        return hmac.compare_digest(_digest(password, self.salt, self.iterations), self.digest)

    def text(self) -> str:
        parts = [] if not self.iterations else [str(self.iterations)]
        encoded = [base64.b64encode(part).decode() for part in (self.salt, self.digest)]
        return "$".join(["", "7" if self.iterations else "6", *parts, *encoded])


def hashed(password: bytes) -> Hashed:
    salt = secrets.token_bytes(_SALT_BYTES)
    return Hashed(ITERATIONS, salt, _digest(password, salt, ITERATIONS))


def is_hash(text: str) -> bool:
    """Whether it has the form of one: quick enough for a hundred thousand lines."""
    return _FORM.fullmatch(text) is not None


def parsed(text: str) -> Hashed:
    """``ValueError`` where that is no hash of a kind that is known."""
    found = _FORM.fullmatch(text)
    if found is None:
        raise ValueError("it is neither $7$ nor $6$")
    iterations, salt, digest = found.groups()
    return Hashed(int(iterations or 0), base64.b64decode(salt, validate=True), base64.b64decode(digest, validate=True))


def _digest(password: bytes, salt: bytes, iterations: int) -> bytes:
    if iterations:
        return hashlib.pbkdf2_hmac("sha512", password, salt, iterations)
    return hashlib.sha512(password + salt).digest()
