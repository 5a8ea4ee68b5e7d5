"""Keys and revocations on the control bus, and their copies in the state directory.

A control bus that is lost must not lock a million devices out, nor let one in that was thrown out: whatever the bus
lacks is restored from the copies.
"""

import secrets
import string
from collections.abc import Callable
from pathlib import Path

import msgspec

from tidegate.bus.client import Bus
from tidegate.bus.copies import read_copy, write_copy
from tidegate.bus.documents import IDENTITY_KEYS, REVOCATIONS, REVOKED
from tidegate.bus.key_value import Entry
from tidegate.model.credentials import SECRET_BYTES, Key, Keys, newest
from tidegate.model.errors import DamagedDocumentError, UserError
from tidegate.model.registration import Revocation, newer, shard_of

KEYS_FILE = "identity.json"
REVOKED_FILE = "revoked.json"
_KEY_ID = string.ascii_lowercase + string.digits
_KEY_ID_LENGTH = 6

Revoked = dict[str, Revocation]
Say = Callable[[str], None]


def settle(bus: Bus, state: Path, say: Say = lambda _: None) -> Keys:
    """Whatever the bus lacks of both is there afterwards. Whoever starts the parts of a machine calls this.

    What cannot be restored is left as it is, and said.
    """
    settle_revoked(bus, state, say)
    return settle_keys(bus, state)


# -- keys


def settle_keys(bus: Bus, state: Path) -> Keys:
    """The newer of those on the bus and those of the copy are in both afterwards; where there are none, new ones."""
    copied = _copied_keys(state)

    def settled(there: Keys | None) -> Keys:
        if there is None or copied is None:
            return there or copied or Keys(current=new_key())
        return newest(there, copied)

    try:
        keys = bus.change(IDENTITY_KEYS, settled)
    except DamagedDocumentError:
        if copied is None:
            raise
        bus.put(IDENTITY_KEYS, copied)
        return copied
    assert keys is not None
    _copy_keys(keys, state)
    return keys


def rotate_key(bus: Bus, state: Path) -> Keys:
    """A new key for new passwords; those of the one before it count until the rotation is finished."""

    def rotated(keys: Keys) -> Keys:
        if keys.previous is not None:
            raise UserError(
                f"The rotation from key {keys.previous.id} to key {keys.current.id} is not finished: give every device "
                "its new password, then finish it with 'tidegate device rotate --installation-key --finish'."
            )
        return keys.rotated(new_key())

    return _changed_keys(bus, state, rotated)


def finish_key_rotation(bus: Bus, state: Path) -> Keys:
    """From now on passwords of the previous key are wrong."""

    def finished(keys: Keys) -> Keys:
        if keys.previous is None:
            raise UserError("No key is being rotated: begin with 'tidegate device rotate --installation-key'.")
        return keys.finished()

    return _changed_keys(bus, state, finished)


def new_key() -> Key:
    key_id = "".join(secrets.choice(_KEY_ID) for _ in range(_KEY_ID_LENGTH))
    return Key(id=key_id, secret=secrets.token_bytes(SECRET_BYTES))


def _changed_keys(bus: Bus, state: Path, step: Callable[[Keys], Keys]) -> Keys:
    settled = settle_keys(bus, state)
    keys = bus.change(IDENTITY_KEYS, lambda there: step(there or settled))
    assert keys is not None
    _copy_keys(keys, state)
    return keys


def _copied_keys(state: Path) -> Keys | None:
    return read_copy(state / KEYS_FILE, Keys)


def _copy_keys(keys: Keys, state: Path) -> None:
    """Unless somebody who was faster has copied newer ones."""
    copied = _copied_keys(state)
    if copied is None or (copied != keys and newest(keys, copied) == keys):
        write_copy(state / KEYS_FILE, msgspec.json.format(msgspec.json.encode(keys)))


# -- revocations


def settle_revoked(bus: Bus, state: Path, say: Say) -> None:
    """What the bus lacks of the copy is put there, and those who watch it are told; then the copy has all of it."""
    copied: dict[str, Revoked] = {}
    for name, revocation in _copied_revoked(state).items():
        copied.setdefault(shard_of(name), {})[name] = revocation
    stored = bus.entries(REVOKED)
    index = _index(bus)
    for shard in sorted({*copied, *stored}):
        entry, wanted = stored.get(shard), copied.get(shard, {})
        there = None if entry is None else _decoded(shard, entry)
        if there is None and not wanted:
            say(_unrestored(shard, state))
        elif there is None or _merged(there, wanted) != there:
            _restore(bus, shard, wanted)
        elif entry is not None and index.get(shard) != entry.revision:
            tell_shard(bus, shard)
    copy_revoked(bus, state)


def _unrestored(shard: str, state: Path) -> str:
    """An empty shard in its place would let in whoever was thrown out."""
    return (
        f"The document {REVOKED.key_of(shard)!r} on the control bus is damaged, and {state / REVOKED_FILE} has no "
        "copy of it: run this where its copy is, or delete the document and revoke its names again."
    )


def _restore(bus: Bus, shard: str, copied: Revoked) -> None:
    try:
        bus.change(REVOKED, lambda there: _merged(there or {}, copied), shard)
    except DamagedDocumentError:
        bus.put(REVOKED, copied, shard)
    tell_shard(bus, shard)


def _merged(there: Revoked, copied: Revoked) -> Revoked:
    return there | {name: newer(there.get(name), revocation) for name, revocation in copied.items()}


def _decoded(shard: str, entry: Entry) -> Revoked | None:
    try:
        return REVOKED.decode(entry.value, shard)
    except DamagedDocumentError:
        return None


def _index(bus: Bus) -> dict[str, int]:
    try:
        return bus.get(REVOCATIONS) or {}
    except DamagedDocumentError:
        return {}


def tell_shard(bus: Bus, shard: str) -> None:
    """Let those who watch know the shard's revision, unless they do: a word that was never said is said by this."""
    entry = bus.entry(REVOKED, shard)
    revision = 0 if entry is None else entry.revision

    def told(index: dict[str, int] | None) -> dict[str, int]:
        return {**(index or {}), shard: revision}

    try:
        bus.change(REVOCATIONS, told)
    except DamagedDocumentError:
        bus.put(REVOCATIONS, {name: found.revision for name, found in bus.entries(REVOKED).items()})


def copy_revoked(bus: Bus, state: Path) -> None:
    """With what only the copy has: of a shard that cannot be read, or by somebody who was faster."""
    found = Revoked()
    for shard, entry in bus.entries(REVOKED).items():
        found.update(_decoded(shard, entry) or {})
    copied = _copied_revoked(state)
    found = _merged(found, copied)
    if found != copied:
        write_copy(state / REVOKED_FILE, msgspec.json.encode(found))


def _copied_revoked(state: Path) -> Revoked:
    return read_copy(state / REVOKED_FILE, Revoked) or {}
