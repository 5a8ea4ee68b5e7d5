"""Where what is in the shared memory.

A row is one process's: 64-bit cells that only it writes, counters first, then gauges, then what it says about the
clients it holds. The row behind the last process's has the counters of those that are gone. Every process must agree
on all of this, so a digest of it stands at the beginning.
"""

import zlib

from tidegate.gateway.shared.reasons import REASONS

BROKERS_MAX = 256  # different names of brokers in a gateway's life; what comes later shares the last place
CLASSES_MAX = 16
_CLASSES = CLASSES_MAX + 1  # the last is for topics that no class asks for

# Cells. Counters only grow; they outlive their process.
(PUBLISHES, ACKNOWLEDGED, ADVISED, BYTES_IN, BYTES_OUT, HELD_TOTAL) = range(6)
(NOTED, REPORTED, NAMELESS, UNWATCHED) = range(6, 10)
REFUSED = 10  # one for each reason
DROPPED = REFUSED + len(REASONS)
CLASS_PUBLISHES = DROPPED + len(REASONS)
COUNTERS = CLASS_PUBLISHES + _CLASSES
# Gauges: what is now. They end with their process.
(PROCESS, PID, READY, DRAINING, TOLD) = range(COUNTERS, COUNTERS + 5)
(CONNECTIONS, HELD, ADMITTING, LATE_US, OVERLOAD, UNREPORTED_S) = range(TOLD + 1, TOLD + 7)
VERSIONS = UNREPORTED_S + 1  # connections per version of MQTT
VERSION_NAMES = ("3.1", "3.1.1", "5", "5 on 3.1.1")
CLASS_DEVICES = VERSIONS + len(VERSION_NAMES)
CLASSLESS_DEVICES = CLASS_DEVICES + CLASSES_MAX
BROKER_CONNECTIONS = CLASS_DEVICES + _CLASSES
CELLS = BROKER_CONNECTIONS + BROKERS_MAX

CELL_BYTES = 8
# Listener sets, in the first page behind the header: 1 where no process accepts the connections that wait there.
LISTENER_SETS_MAX = 64
LISTENER_SETS_AT = 512
PAGE_BYTES = 4096
TOLD_BYTES = (
    PAGE_BYTES  # what one process says about the clients it holds, twice: it writes one while the other is read
)
ROW_BYTES = -(-CELLS * CELL_BYTES // PAGE_BYTES) * PAGE_BYTES + 2 * TOLD_BYTES
BROKER_BYTES = 128
BUCKET_BYTES = 64  # a cache line each
WAYS_MAX = 16
ENTRY_BYTES = 80

# Byte-range locks: which byte stands for what. The bytes themselves are not touched.
BROKERS_LOCK = 0
DIRECTORY_LOCKS = 64
DIRECTORY_LOCK = 1
BUCKET_LOCK = DIRECTORY_LOCK + DIRECTORY_LOCKS

_SIZES = (CELLS, ROW_BYTES, TOLD_BYTES, BROKERS_MAX, BROKER_BYTES, BUCKET_BYTES, WAYS_MAX, ENTRY_BYTES)
LAYOUT = zlib.crc32(repr((1, REASONS, VERSION_NAMES, CLASSES_MAX, _SIZES)).encode())
