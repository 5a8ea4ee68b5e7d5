"""Passwords that need no database: a message authentication code over a device's name, by a key of the installation.

::

    password = tg1.<key id>.<generation>.<code>
    code     = base64url(first 18 bytes of HMAC-SHA256(secret, "tidegate device" 0 key id 0 generation 0 name))

The zeros are NUL bytes. Neither a key id nor a number nor a name contains one, so that no two are encoded alike.
Whoever has the secret can make the password of any device, also at the factory, years before it is switched on. A
password is taken back by its generation: whatever is below the lowest one allowed is refused.
"""

import base64
import hmac
from typing import Annotated, NamedTuple

import msgspec

from tidegate.model.errors import UserError

SCHEME = "tg1"
SECRET_BYTES = 32
GENERATION_MAX = 2**31 - 1
_CODE_BYTES = 18  # 144 bits, and 24 characters without padding
_PURPOSE = b"tidegate device"
_PREFIX = SCHEME.encode() + b"."
_DIGITS_MAX = len(str(GENERATION_MAX))

Generation = Annotated[int, msgspec.Meta(ge=1, le=GENERATION_MAX)]


class Key(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One key of the installation. Its id stands in every password that was made with it."""

    id: Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9]{1,8}$")]
    secret: Annotated[bytes, msgspec.Meta(min_length=SECRET_BYTES, max_length=SECRET_BYTES)]

    def __repr__(self) -> str:
        return f"Key(id={self.id!r})"

    def __rich_repr__(self) -> list[tuple[str, str]]:
        return [("id", self.id)]


class Keys(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """New passwords are made with the current key; those of the previous one count until its rotation is finished.

    ``revision`` is raised at every change, so that of two copies the newer one is known.
    """

    current: Key
    previous: Key | None = None
    revision: Annotated[int, msgspec.Meta(ge=0)] = 0

    def __post_init__(self) -> None:
        if self.previous is not None and self.previous.id == self.current.id:
            raise UserError(f"Both keys of the installation are called {self.current.id}: give them ids that differ.")

    def rotated(self, key: Key) -> "Keys":
        return Keys(current=key, previous=self.current, revision=self.revision + 1)

    def finished(self) -> "Keys":
        return Keys(current=self.current, revision=self.revision + 1)

    def follow(self, before: "Keys") -> bool:
        """Whether these came of those by one change or several: a key that was thrown away must not come back."""
        if self.revision != before.revision:
            return self.revision > before.revision
        # Keys of before there were revisions.
        begun = before.current == self.previous
        return begun or (before.current == self.current and before.previous is not None and self.previous is None)

    def find(self, key_id: bytes) -> Key | None:
        for key in (self.current, self.previous):
            if key is not None and key.id.encode() == key_id:
                return key
        return None

    def has(self, key_id: str) -> bool:
        return self.find(key_id.encode(errors="replace")) is not None


def newest(there: Keys, copied: Keys) -> Keys:
    """Of what is said and a copy that may be older or younger: the one that was changed last."""
    if there == copied or there.follow(copied):
        return there
    if copied.follow(there):
        return copied
    raise UserError(
        f"The control bus has key {there.current.id} and its copy identity.json has key {copied.current.id}, and "
        "neither says which is newer: move identity.json away to keep the one of the bus, or delete the document "
        "'identity-keys' there to restore the copy."
    )


class Proof(NamedTuple):
    """What a right password says of itself."""

    key_id: str
    generation: int


def password_of(key: Key, name: str, generation: int) -> str:
    return f"{SCHEME}.{key.id}.{generation}.{_code(key, name, str(generation).encode()).decode()}"


def is_derived(password: bytes) -> bool:
    """Whether it looks like such a password, be it right or wrong."""
    return password.startswith(_PREFIX)


def verify(keys: Keys, name: str, password: bytes) -> Proof | None:
    """What the password proves about the name; None for any other bytes. Its time tells nothing of a code."""
    parts = password.split(b".", 4)
    if len(parts) != 4 or not is_derived(password):
        return None
    key, generation = keys.find(parts[1]), _generation(parts[2])
    if key is None or generation is None:
        return None
    if not hmac.compare_digest(_code(key, name, parts[2]), parts[3]):
        return None
    return Proof(key.id, generation)


def _generation(digits: bytes) -> int | None:
    """A number as this module writes it: no sign, no zero before it, so that one password has one form."""
    if not digits.isdigit() or len(digits) > _DIGITS_MAX or digits.startswith(b"0"):
        return None
    number = int(digits)
    return number if number <= GENERATION_MAX else None


def _code(key: Key, name: str, generation: bytes) -> bytes:
    said = b"\0".join((_PURPOSE, key.id.encode(), generation, name.encode(errors="surrogatepass")))
    return base64.urlsafe_b64encode(hmac.digest(key.secret, said, "sha256")[:_CODE_BYTES])
