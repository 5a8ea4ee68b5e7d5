"""What is kept of a device, in words and for programs."""

import time
from collections.abc import Sequence
from typing import Any

from tidegate.model.registration import Entry


def state_of(entry: Entry, now_s: float) -> str:
    revocation = entry.revocation
    if revocation is None:
        return "allowed"
    if revocation.everywhere:
        return f"revoked since {_when(revocation.from_s)}"
    lowest = revocation.lowest(now_s)
    if lowest < revocation.generation_min:
        return f"allowed; passwords of generation {lowest} count until {_when(revocation.from_s)}"
    return f"allowed; passwords below generation {lowest} are refused"


def described(name: str, entry: Entry, now_s: float) -> dict[str, Any]:
    registered, revocation = entry.registered, entry.revocation
    return {
        "name": name,
        "registered": registered is not None,
        "generation": entry.generation,
        "added_s": None if registered is None else registered.added_s,
        "note": None if registered is None else registered.note,
        "revoked": entry.is_revoked,
        "generation_min": 1 if revocation is None else revocation.lowest(now_s),
        "changes_s": None if revocation is None or revocation.from_s <= now_s else revocation.from_s,
    }


def about(name: str, entry: Entry, now_s: float) -> list[str]:
    """All lines that are said of a device; whoever knows more about it adds lines here."""
    registered = entry.registered
    if registered is None:
        known = (
            "not registered; a password of generation 1 counts all the same" if entry == Entry() else "not registered"
        )
    else:
        known = f"registered since {_when(registered.added_s)}, generation {registered.generation}"
    note = [] if registered is None or registered.note is None else [f"note: {registered.note}"]
    return [f"{name}: {known}.", *note, f"Now: {state_of(entry, now_s)}."]


def counted(names: Sequence[str]) -> str:
    return f"{names[0]} is" if len(names) == 1 else f"{len(names):,} devices are"


def _when(at_s: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at_s))
