"""Rotations that are under way: which generation each name gets is decided once.

The decision is written into the state directory before the bus is changed, and stays there until the passwords are
handed out. So a command that was interrupted may be given again: it gives the same passwords. Rotating further would
end those that devices still have, long before the end of the grace that they were promised.
"""

import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from tidegate.bus.copies import read_copy, write_copy
from tidegate.model.registration import Entry

_FILES = "rotating-*.json"


class Rotation(msgspec.Struct, frozen=True):
    """Counts until its grace ends: from then on no device has a password that another rotation could end too early."""

    ends_s: float  # Unix time
    generations: dict[str, int]


def decide(state: Path, entries: Mapping[str, Entry], now_s: float, grace_s: float) -> dict[str, int]:
    """The generation that each name gets, by what is kept of it now."""
    unfinished = _unfinished(state, now_s)
    found = {name: _following(entry, unfinished.get(name), now_s) for name, entry in entries.items()}
    path = state / _FILES.replace("*", secrets.token_hex(4))
    write_copy(path, msgspec.json.encode(Rotation(now_s + grace_s, found)))
    return found


def finish(state: Path, names: Iterable[str]) -> None:
    """Their passwords are handed out: the next rotation is another one."""
    done = frozenset(names)
    for path in state.glob(_FILES):
        rotation = read_copy(path, Rotation)
        if rotation is None or done.isdisjoint(rotation.generations):
            continue
        left = {name: generation for name, generation in rotation.generations.items() if name not in done}
        if left:
            write_copy(path, msgspec.json.encode(Rotation(rotation.ends_s, left)))
        else:
            path.unlink(missing_ok=True)


def _unfinished(state: Path, now_s: float) -> dict[str, int]:
    found: dict[str, int] = {}
    for path in state.glob(_FILES):
        rotation = read_copy(path, Rotation)
        if rotation is not None and rotation.ends_s > now_s:
            found.update(rotation.generations)
        else:
            path.unlink(missing_ok=True)
    return found


def _following(entry: Entry, unfinished: int | None, now_s: float) -> int:
    """What was decided and not handed out, unless the name has gone further since."""
    following = entry.rotated(now_s, 0.0).generation
    return unfinished if unfinished in (entry.generation, following) else following
