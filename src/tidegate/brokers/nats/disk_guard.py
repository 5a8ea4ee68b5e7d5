"""Near a full disk the brokers stop acknowledging, before they would have to lose or to stop.

The gate is a limit of one byte on ``$MQTT_msgs`` with ``discard: new``. NATS then closes the connection of a
client whose QoS 1 message it could not store, without a PUBACK; the client connects again, repeats the
message, and is acknowledged soon after the gate opened. What is already stored stays and flows on to the
slices, and messages that nobody is interested in are not affected. Taking the publish permission away instead
would be wrong: NATS drops the message *and acknowledges it*. A disk that is really full is worse than the
gate: JetStream switches itself off until the server is started again, though nothing acknowledged is lost. A
disk that has room but no inode left is as full: the server cannot begin another file.

What no slice can take would fill the disk without end: the guard has it removed (``strays``).
"""

import http.client
import json
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from tidegate.brokers.nats.ingest import INGEST_STREAM, MQTT_STREAM
from tidegate.brokers.nats.strays import Strays
from tidegate.bus.jetstream import ask_all
from tidegate.bus.wire import Wire
from tidegate.machine.disks import Room, room_at
from tidegate.model.backlog import DiskState
from tidegate.model.errors import BrokerUnavailableError

CLOSE_SHARE = 0.85
OPEN_SHARE = 0.75
FREE_BYTES_MIN = 512 * 1024**2
# Files that must still be possible: a server begins one every few MiB per stream, and others use the disk as well.
FREE_INODES_MIN = 2_000
GATE_BYTES = 1


class NatsDiskGuard:
    """Call ``check`` every second or so, from one place. The gate's position is kept by the brokers alone."""

    def __init__(
        self,
        wire: Wire,
        monitor_urls: Sequence[str],
        store_directories: Sequence[Path],
        disk_bytes_max: int,
        *,
        free_bytes_min: int = FREE_BYTES_MIN,
    ) -> None:
        self._wire = wire
        self._strays = Strays(wire)
        self._nodes = tuple(zip(monitor_urls, store_directories, strict=True))
        self._disk_bytes_max = disk_bytes_max
        self._free_bytes_min = free_bytes_min

    def close(self) -> None:
        self._wire.close()

    def check(self) -> DiskState:
        """Measure, close or open the gate where that is due, and say what is."""
        mqtt, ingest = ask_all(
            self._wire, [(f"STREAM.INFO.{MQTT_STREAM}", None), (f"STREAM.INFO.{INGEST_STREAM}", None)]
        )
        is_open = int(mqtt["config"]["max_bytes"]) != GATE_BYTES
        underway = bytes_underway(int(mqtt["state"]["bytes"]), int(ingest["state"]["bytes"]))
        rooms = [
            (stored, room_at(directory)) for url, directory in self._nodes if (stored := stored_bytes(url)) is not None
        ]
        if not rooms:
            raise BrokerUnavailableError("No broker says how much it stores: check that they run.")
        share = max(self._share(stored, underway, room.bytes_free) for stored, room in rooms)
        files = max(inode_share(room) for _, room in rooms)
        due = should_open(max(share, files), is_open=is_open)
        if due != is_open:
            self._set_gate(mqtt["config"], is_open=due)
        return DiskState(
            used_share=max(share, files),
            is_open=due,
            alarm=None if due else _alarm(share, files),
            removed=self._strays.remove(mqtt["state"]),
        )

    def _share(self, stored: int, underway: int, free: int) -> float:
        capacity = min(self._disk_bytes_max, stored + max(0, free - self._free_bytes_min))
        return (stored + underway) / capacity if capacity > 0 else 1.0

    def _set_gate(self, config: dict[str, object], *, is_open: bool) -> None:
        changed = {**config, "max_bytes": -1 if is_open else GATE_BYTES, "discard": "new"}
        ask_all(self._wire, [(f"STREAM.UPDATE.{MQTT_STREAM}", changed)], timeout_s=15.0)


def _alarm(share: float, files: float) -> str:
    if files > share:
        return (
            f"Hardly {FREE_INODES_MIN:,} inodes are left on the disk of the brokers' store, so readings are not "
            "acknowledged and devices keep them: remove files from that disk, or compact tables that are on it; the "
            "store opens by itself."
        )
    return (
        f"The brokers' store is {share:.0%} full, so readings are not acknowledged and devices keep them: "
        f"it opens by itself at {OPEN_SHARE:.0%}; let the processing nodes catch up, free disk space, or "
        "raise disk_bytes_max."
    )


def inode_share(room: Room) -> float:
    """The room for files on the scale of the two thresholds: at ``CLOSE_SHARE`` the least that must stay is left."""
    return min(1.0, CLOSE_SHARE * FREE_INODES_MIN / max(room.inodes_free, 1)) if room.inodes else 0.0


def bytes_underway(mqtt_bytes: int, ingest_bytes: int) -> int:
    """Room that must stay for what is acknowledged already.

    Each step stores its copy before the last one deletes its own, and a copy is about a third larger for its
    headers; freed blocks return to the disk late.
    """
    return 3 * mqtt_bytes + 2 * ingest_bytes


def should_open(share: float, *, is_open: bool) -> bool:
    """Two thresholds, so that the gate does not flutter around one."""
    return share < CLOSE_SHARE if is_open else share <= OPEN_SHARE


def stored_bytes(monitor_url: str) -> int | None:
    """What one broker stores, or None where it does not answer: a dead broker fills no disk."""
    parts = urlsplit(monitor_url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=2.0)
    try:
        connection.request("GET", "/jsz")
        return int(json.loads(connection.getresponse().read())["storage"])
    except (OSError, http.client.HTTPException, ValueError, KeyError):
        return None
    finally:
        connection.close()
