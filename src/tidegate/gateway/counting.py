"""What one gateway process has done since it started, in cells that outlive it. Counters only grow.

Where every message counts, add to a cell (``counters.cells[PUBLISHES] += n``); everywhere else the names do.
"""

from array import array

from tidegate.gateway.reasons import OTHER, PLACES
from tidegate.gateway.shared import layout


class Cell:
    """One cell under a name."""

    def __init__(self, place: int) -> None:
        self._place = place

    def __get__(self, counters: "Counters", _: type) -> int:
        return counters.cells[self._place]

    def __set__(self, counters: "Counters", value: int) -> None:
        counters.cells[self._place] = value


class Counters:
    """``cells`` is one row of the shared memory; without one, what is counted ends with this object."""

    def __init__(self, cells: memoryview | None = None) -> None:
        self.cells = memoryview(array("q", bytes(layout.CELLS * layout.CELL_BYTES))) if cells is None else cells

    publishes = Cell(layout.PUBLISHES)
    acknowledged = Cell(layout.ACKNOWLEDGED)
    advised = Cell(layout.ADVISED)
    bytes_in = Cell(layout.BYTES_IN)
    bytes_out = Cell(layout.BYTES_OUT)
    held_total = Cell(layout.HELD_TOTAL)
    connections = Cell(layout.CONNECTIONS)
    held = Cell(layout.HELD)
    admitting = Cell(layout.ADMITTING)
    overload = Cell(layout.OVERLOAD)

    def refuse(self, reason: str) -> None:
        """A connection, or a reading by HTTP, is not taken or ends because of this."""
        self.cells[layout.REFUSED + PLACES.get(reason, PLACES[OTHER])] += 1

    def drop(self, reason: str, publishes: int = 1) -> None:
        """Publishes at QoS 0 are not passed on because of this."""
        self.cells[layout.DROPPED + PLACES.get(reason, PLACES[OTHER])] += publishes

    def version(self, name: str, change: int) -> None:
        """A connection of this version of MQTT comes (1) or goes (-1)."""
        self.cells[layout.VERSIONS + layout.VERSION_NAMES.index(name)] += change
