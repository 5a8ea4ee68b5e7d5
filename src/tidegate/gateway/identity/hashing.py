"""Hashed passwords as Mosquitto keeps them, so that a user base can be carried over and back.

::

    $7$<iterations>$<salt>$<hash>    PBKDF2-HMAC-SHA512(password, salt, iterations)
    $6$<salt>$<hash>                 SHA512(password salt)

Salt and hash are base64.
"""

import base64
import binascii
import hashlib
import hmac
import secrets

import msgspec

from tidegate.model.errors import UserError

ITERATIONS = 20_000  # about ten milliseconds: once per connection, and never again for a password that was right
ITERATIONS_MAX = 10_000_000
_SALT_BYTES = 12
_HASH_BYTES = 64


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


def parsed(text: str) -> Hashed:
    """``UserError`` where that is no hash of a kind that is known."""
    match text.split("$"):
        case ["", "7", iterations, salt, digest] if _is_count(iterations):
            found = Hashed(int(iterations), _decoded(salt), _decoded(digest))
        case ["", "6", salt, digest]:
            found = Hashed(0, _decoded(salt), _decoded(digest))
        case _:
            raise UserError("its hash is neither $7$ nor $6$: make the line with 'tidegate device hash'.")
    if not found.salt or len(found.digest) != _HASH_BYTES:
        raise UserError("its hash is cut or damaged: make the line with 'tidegate device hash'.")
    return found


def _is_count(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 8 and 1 <= int(text) <= ITERATIONS_MAX


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""


def _digest(password: bytes, salt: bytes, iterations: int) -> bytes:
    if iterations:
        return hashlib.pbkdf2_hmac("sha512", password, salt, iterations)
    return hashlib.sha512(password + salt).digest()
