"""Who owns which slice, and how a slice changes hands.

The assignment is one document that every node reads and that changes only by compare-and-set. A slice is *owned*,
*leaving* (owned, with a taker named) or *free*. Each change of owner raises the slice's epoch::

    free     --adopt-->    owned
    owned    --request-->  leaving        (the owner goes on working)
    leaving  --release-->  owned          (by the giver, once everything it read is committed; epoch + 1)
    owned    --adopt-->    owned          (the owner's lease has run out; epoch + 1)
    owned    --vacate-->   free           (the owner leaves of its own accord; epoch + 1)

An epoch is a fence, not a lock: whoever holds a lower one than the table's log has recorded can no longer commit. So
a wrong guess about who is dead costs a repeated read, never a row.
"""

from collections.abc import Collection, Mapping

import msgspec


class Ownership(msgspec.Struct, frozen=True, omit_defaults=True):
    """One slice's place in the assignment."""

    owner: str | None = None
    epoch: int = 0
    taker: str | None = None


class Change(msgspec.Struct, frozen=True):
    """One slice that changed hands or shall, and why."""

    slice: int
    taker: str
    reason: str


class Assignment(msgspec.Struct, frozen=True):
    """All slices; index is the slice's number."""

    ownerships: tuple[Ownership, ...] = msgspec.field(name="holds")

    def owned_by(self, node: str) -> dict[int, Ownership]:
        return {slice_: ownership for slice_, ownership in enumerate(self.ownerships) if ownership.owner == node}

    def promised_to(self, node: str) -> list[int]:
        """Slices that name this node as their taker and are still somebody else's."""
        return [
            slice_
            for slice_, ownership in enumerate(self.ownerships)
            if ownership.taker == node and ownership.owner not in (None, node)
        ]

    def _with(self, changed: Mapping[int, Ownership]) -> "Assignment":
        return Assignment(tuple(changed.get(slice_, ownership) for slice_, ownership in enumerate(self.ownerships)))

    def request(self, slice_: int, taker: str, alive: Collection[str]) -> "Assignment | str":
        """Name a taker for a slice, or say why not."""
        if not 0 <= slice_ < len(self.ownerships):
            return f"there is no slice {slice_}: slices are 0 to {len(self.ownerships) - 1}"
        if taker not in alive:
            known = ", ".join(sorted(alive)) or "none"
            return f"there is no running node {taker}: running nodes are {known}"
        ownership = self.ownerships[slice_]
        if ownership.owner == taker:
            return f"slice {slice_} is on node {taker} already"
        if ownership.owner is None:
            return self._with({slice_: Ownership(taker, ownership.epoch + 1)})
        return self._with({slice_: msgspec.structs.replace(ownership, taker=taker)})

    def release(self, giver: str, alive: Collection[str], ready: Collection[int]) -> "Assignment":
        """The giver lets go of slices that are ready and have a taker. A taker that died meanwhile gets nothing."""
        changed = {}
        for slice_, ownership in self.owned_by(giver).items():
            if ownership.taker is not None and slice_ in ready:
                goes = ownership.taker in alive
                changed[slice_] = (
                    Ownership(ownership.taker, ownership.epoch + 1) if goes else Ownership(giver, ownership.epoch)
                )
        return self._with(changed)

    def renew(self, node: str) -> "Assignment":
        """A node starts its query anew: a higher epoch shuts out whatever is left of the query before."""
        owned = self.owned_by(node)
        return self._with(
            {s: msgspec.structs.replace(ownership, epoch=ownership.epoch + 1) for s, ownership in owned.items()}
        )

    def outdo(self, node: str, epochs: Mapping[int, int]) -> "Assignment":
        """Epochs above those that the tables have seen: this document is older than they, it was lost or restored."""
        owned = self.owned_by(node)
        return self._with(
            {
                slice_: msgspec.structs.replace(owned[slice_], epoch=epoch + 1)
                for slice_, epoch in epochs.items()
                if slice_ in owned and owned[slice_].epoch <= epoch
            }
        )

    def vacate(self, node: str) -> "Assignment":
        """A node leaves in good order: its slices go to their named takers, or become free."""
        owned = self.owned_by(node)
        return self._with({s: Ownership(ownership.taker, ownership.epoch + 1) for s, ownership in owned.items()})

    def adopt(self, alive: Collection[str]) -> tuple["Assignment", tuple[Change, ...]]:
        """Give slices that are free, or whose owner is dead, to the living nodes that have the fewest."""
        if not alive:
            return self, ()
        burden = {node: len(self.owned_by(node)) for node in sorted(alive)}
        changed: dict[int, Ownership] = {}
        changes = []
        for slice_, ownership in enumerate(self.ownerships):
            if ownership.owner in burden:
                continue
            named = ownership.taker if ownership.taker in burden else None
            taker = named or min(burden, key=lambda node: (burden[node], node))
            burden[taker] += 1
            changed[slice_] = Ownership(taker, ownership.epoch + 1)
            reason = "the slice was free" if ownership.owner is None else f"the lease of {ownership.owner} has run out"
            changes.append(Change(slice_, taker, reason))
        return self._with(changed), tuple(changes)


def all_free(slices: int) -> Assignment:
    return Assignment(tuple(Ownership() for _ in range(slices)))
