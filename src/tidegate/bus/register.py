"""The register of devices on the control bus: changed for many names at once, shard by shard.

Each shard is changed by compare-and-set, and again where somebody else was faster. A command that was interrupted may
be given again: what is done already stays as it is. A step may be applied more than once to a name, so it says what
shall be, and never how much more.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tidegate.bus.client import Bus, Stored
from tidegate.bus.documents import REGISTER, REVOKED, Document
from tidegate.bus.identity import tell_shard
from tidegate.model.errors import UserError
from tidegate.model.registration import Entry, Registered, Revocation, shard_of

# What one message to the bus may have, and a little less.
SHARD_BYTES_MAX = 1_000_000

# How many names are done, of how many.
Progress = Callable[[int, int], None]
Step = Callable[[Entry], Entry]
_NamedStep = Callable[[str, Entry], Entry]


class Listed(NamedTuple):
    name: str
    entry: Entry


def change(bus: Bus, names: Sequence[str], step: Step, progress: Progress | None = None) -> dict[str, Entry]:
    """Apply a step to each name; what is kept of each then, in the order of the names."""
    return _change(bus, names, lambda _, entry: step(entry), progress)


def raise_generations(
    bus: Bus, generations: Mapping[str, int], now_s: float, grace_s: float, progress: Progress | None = None
) -> dict[str, Entry]:
    """Rotate each name to its generation, unless it is there already or revoked."""
    return _change(bus, generations, lambda name, entry: entry.rotated_to(generations[name], now_s, grace_s), progress)


def entries(bus: Bus, names: Iterable[str]) -> dict[str, Entry]:
    """What is kept of each name now."""
    found: dict[str, Entry] = dict.fromkeys(names, Entry())
    for shard, group in _by_shard(found).items():
        registered, revoked = bus.get(REGISTER, shard) or {}, bus.get(REVOKED, shard) or {}
        found.update({name: Entry(registered.get(name), revoked.get(name)) for name in group})
    return found


def listed(bus: Bus) -> Iterator[Listed]:
    """Every name of which something is kept, shard by shard."""
    for shard in sorted({*bus.names(REGISTER), *bus.names(REVOKED)}):
        registered, revoked = bus.get(REGISTER, shard) or {}, bus.get(REVOKED, shard) or {}
        for name in sorted({*registered, *revoked}):
            yield Listed(name, Entry(registered.get(name), revoked.get(name)))


def _change(bus: Bus, names: Iterable[str], step: _NamedStep, progress: Progress | None) -> dict[str, Entry]:
    found: dict[str, Entry] = dict.fromkeys(names, Entry())
    done = 0
    for shard, group in _by_shard(found).items():
        found.update(_change_shard(bus, shard, group, step))
        done += len(group)
        if progress is not None:
            progress(done, len(found))
    return found


def _by_shard(names: Iterable[str]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(shard_of(name), []).append(name)
    return groups


def _change_shard(bus: Bus, shard: str, names: Sequence[str], step: _NamedStep) -> dict[str, Entry]:
    while True:
        registered, revoked = bus.stored(REGISTER, shard), bus.stored(REVOKED, shard)
        before_registered: dict[str, Registered] = {} if registered is None else registered.value
        before_revoked: dict[str, Revocation] = {} if revoked is None else revoked.value
        after = {name: step(name, Entry(before_registered.get(name), before_revoked.get(name))) for name in names}
        now_registered = {
            **before_registered,
            **{name: one.registered for name, one in after.items() if one.registered},
        }
        now_revoked = {**before_revoked, **{name: one.revocation for name, one in after.items() if one.revocation}}
        if _put(bus, REGISTER, now_registered, shard, registered) and _put(bus, REVOKED, now_revoked, shard, revoked):
            if now_revoked:
                tell_shard(bus, shard)
            return after


def _put(bus: Bus, document: Document[Any], now: dict[str, Any], shard: str, before: Stored[Any] | None) -> bool:
    """False where somebody else was faster."""
    if now == (before.value if before is not None else {}):
        return True
    size_bytes = len(document.encode(now))
    if size_bytes > SHARD_BYTES_MAX:
        raise UserError(
            f"The register is full: its shard {shard} would have {size_bytes:,} bytes with {len(now):,} names, and the "
            "control bus takes a million. Nobody has to be registered: 'tidegate device credentials' knows any name."
        )
    return bus.put(document, now, shard, revision=before.revision if before is not None else 0) is not None
