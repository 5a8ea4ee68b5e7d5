"""What one gateway process has done since it started, in cells that outlive it. Counters only grow.

What every message changes is counted in ``tally`` and told to the cells by ``tell``; all else is a cell under a name.
"""

import time
from array import array

from tidegate.gateway.shared import layout
from tidegate.gateway.shared.reasons import OTHER, PLACES
from tidegate.gateway.shared.tally import Tally


class CounterCell:
    """One cell under a name."""

    def __init__(self, place: int) -> None:
        self._place = place

    def __get__(self, counters: "Counters", _: type) -> int:
        return counters.cells[self._place]

    def __set__(self, counters: "Counters", value: int) -> None:
        counters.cells[self._place] = value


class Tallied:
    """One number of the tally under its own name."""

    def __set_name__(self, _: type, name: str) -> None:
        self._name = name

    def __get__(self, counters: "Counters", _: type) -> int:
        found: int = getattr(counters.tally, self._name)
        return found

    def __set__(self, counters: "Counters", value: int) -> None:
        setattr(counters.tally, self._name, value)


class Counters:
    """``cells`` is one row of the shared memory; without one, what is counted ends with this object."""

    def __init__(self, cells: memoryview | None = None) -> None:
        self.cells = memoryview(array("q", bytes(layout.CELLS * layout.CELL_BYTES))) if cells is None else cells
        self.tally = Tally()

    publishes = Tallied()
    acknowledged = Tallied()
    advised = Tallied()
    bytes_in = Tallied()
    bytes_out = Tallied()
    held_total = CounterCell(layout.HELD_TOTAL)
    connections = CounterCell(layout.CONNECTIONS)
    held = CounterCell(layout.HELD)
    admitting = CounterCell(layout.ADMITTING)
    overload = CounterCell(layout.OVERLOAD)

    def tell(self) -> None:
        """What was tallied, for all processes to see."""
        cells, tally = self.cells, self.tally
        cells[layout.PUBLISHES], cells[layout.ACKNOWLEDGED] = tally.publishes, tally.acknowledged
        cells[layout.BYTES_IN], cells[layout.BYTES_OUT] = tally.bytes_in, tally.bytes_out
        cells[layout.ADVISED] = tally.advised
        tally.now_s = time.monotonic()

    def tell_noted(self, noted: int, nameless: int) -> None:
        """Acknowledged readings, with their identity noted and without one."""
        self.cells[layout.NOTED], self.cells[layout.NAMELESS] = noted, nameless

    def tell_reported(self, reported: int, unwatched: int, unreported_s: int = 0) -> None:
        """Of those noted, how many are told for, and for how long the oldest has not been; and how many acknowledged
        readings nobody will check."""
        self.cells[layout.REPORTED], self.cells[layout.UNWATCHED] = reported, unwatched
        self.cells[layout.UNREPORTED_S] = unreported_s

    def refuse(self, reason: str) -> None:
        """A connection, or a reading by HTTP, is not taken or ends because of this."""
        self.cells[layout.REFUSED + PLACES.get(reason, PLACES[OTHER])] += 1

    def drop(self, reason: str, publishes: int = 1) -> None:
        """Publishes at QoS 0 are not passed on because of this."""
        self.cells[layout.DROPPED + PLACES.get(reason, PLACES[OTHER])] += publishes

    def version(self, name: str, change: int) -> None:
        """A connection of this version of MQTT comes (1) or goes (-1)."""
        self.cells[layout.VERSIONS + layout.VERSION_NAMES.index(name)] += change
