"""Documents of processing nodes that are gone for good: taken away by the leader, so that the bus does not fill up.

What such a node had committed is in ``offsets`` by then, or its document stays. A document is old by the bus's own
clock, against the leader's lease, which is renewed all the time; one that its node has just written again is spared.
"""

from collections.abc import Mapping

from tidegate.bus.client import Bus
from tidegate.bus.documents import LEADER, NODE_LEASES, PROGRESS
from tidegate.model.errors import DamagedDocumentError
from tidegate.model.progress import NodeProgress

# Long after it is no longer reported as gone.
FORGOTTEN_S = 86_400.0
EVERY_S = 600.0
# Each look takes away so many at most: it must not keep the sensors from measuring.
AT_ONCE_MAX = 50


def forget_gone(bus: Bus, offsets: Mapping[int, int], forgotten_s: float = FORGOTTEN_S) -> list[str]:
    """Take away what nodes without a lease said longer ago than that; ``offsets`` are those that are stored."""
    lease = bus.entry(LEADER)
    if lease is None:
        return []  # nobody leads, and so nobody knows the bus's time
    alive = set(bus.names(NODE_LEASES))
    forgotten: list[str] = []
    for name in bus.names(PROGRESS):
        if name in alive or len(forgotten) >= AT_ONCE_MAX:
            continue
        entry = bus.entry(PROGRESS, name)
        if entry is None or lease.written_s - entry.written_s <= forgotten_s or not _is_known(entry.value, offsets):
            continue
        bus.delete(PROGRESS, name, revision=entry.revision)
        forgotten.append(name)
    return forgotten


def _is_known(content: bytes, offsets: Mapping[int, int]) -> bool:
    """Whether all that it has committed is known without it; of what cannot be read nothing is ever known."""
    try:
        said: NodeProgress = PROGRESS.decode(content, "gone")
    except DamagedDocumentError:
        return True
    return all(one.committed <= offsets.get(slice_, 0) for slice_, one in said.slices.items())
