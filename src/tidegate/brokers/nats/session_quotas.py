"""Absent MQTT sessions that keep more than they may are ended, so that none of them fills the brokers' disk.

Every few seconds it is measured what each keeps (``session_looks``) and which of them only take up a place
(``idle_records``), and decided who has to go (``brokers.sessions``). A session is ended the way the server itself does
for a client that connects with a clean session: its client finds none when it comes back, and subscribes again. A
connected one is never ended, nor is one of which that is not known.
"""

import http.client
import json
import time
from collections.abc import Callable, Sequence
from functools import partial
from urllib.parse import quote, urlsplit

from tidegate.brokers.nats.idle_records import IdleRecords
from tidegate.brokers.nats.ingest import MQTT_STREAM
from tidegate.brokers.nats.session_endings import Endings
from tidegate.brokers.nats.session_looks import Looks
from tidegate.brokers.nats.session_records import read_record
from tidegate.brokers.sessions import AbsentSession, Ending, SessionBounds, to_end
from tidegate.bus.jetstream import ask
from tidegate.bus.wire import Wire

LOOK_S = 3.0
ENDED_MAX = 8  # at one look: who calls has other things to look after
ALARM_S = 3_600.0
RENEWED_S = 60.0  # a sentence with a count in it is said anew this often at most
MONITOR_S_MAX = 1.0


class NatsSessionQuotas:
    """Call ``check`` every second or so, from one place. ``ended`` counts the sessions that had to go."""

    def __init__(
        self,
        wire: Wire,
        monitor_urls: Sequence[str],
        bounds: SessionBounds,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.ended = 0
        self._wire, self._monitor_urls, self._bounds = wire, tuple(monitor_urls), bounds
        self._clock, self._now = clock, now
        self._is_connected = partial(is_connected, self._monitor_urls)
        self._looks = Looks()
        self._idle = IdleRecords()
        self._endings = Endings(wire)
        self._due_s = 0.0
        self._last_s = 0.0
        self._last = ""
        self._sentence = ""
        self._said_s = 0.0

    def close(self) -> None:
        self._wire.close()

    def check(self) -> str | None:
        """End what has to go, where a look is due. An alarm for an hour after the last one went, or None."""
        clock_s = self._clock()
        if clock_s >= self._due_s:
            self._due_s = clock_s + LOOK_S
            for gone in self._endings.finish(clock_s):
                self.ended, self._last, self._last_s = self.ended + 1, gone, clock_s
            self._look(clock_s)
        if not self.ended or clock_s - self._last_s > ALARM_S:
            return None
        if not self._sentence or clock_s - self._said_s >= RENEWED_S:
            self._sentence, self._said_s = _alarm(self.ended, self._last), clock_s
        return self._sentence

    def _look(self, clock_s: float) -> None:
        now_s = self._now()
        sessions, stored = list[AbsentSession](), 0
        if self._looks.look(self._wire, clock_s) and self._looks.absent:
            sessions, stored = self._measured(clock_s, now_s)
        sessions += self._idle.look(self._wire, self._is_connected, self._bounds.age_s_max, clock_s, now_s)
        sessions = [one for one in sessions if one.name not in self._endings]
        in_all = min(stored, sum(one.bytes for one in sessions))
        for ending in to_end(sessions, in_all, self._bounds)[:ENDED_MAX]:
            if not self._end(ending, clock_s):
                break

    def _measured(self, clock_s: float, now_s: float) -> tuple[list[AbsentSession], int]:
        """What each keeps, and what the stream has in all."""
        self._looks.sample(self._wire)
        state = ask(self._wire, f"STREAM.INFO.{MQTT_STREAM}")["state"]
        stored = int(state["bytes"])
        return self._looks.measured(stored / max(1, int(state["messages"])), clock_s, now_s), stored

    def _end(self, ending: Ending, clock_s: float) -> bool:
        """False where a broker does not answer: then nobody is known to be absent."""
        name = ending.session.name
        record = read_record(self._wire, name)
        if record is not None:
            connected = self._is_connected(record.client) if record.client else True
            if connected is not False:
                return connected is not None
        self._endings.begin(ending, record, self._looks.absent.get(name, []), clock_s)
        return True


def is_connected(monitor_urls: Sequence[str], client: str) -> bool | None:
    """Whether a client is connected to any broker; None where one that does not answer might have it."""
    counts = [_connections(url, client) for url in monitor_urls]
    if any(counts):
        return True
    return None if None in counts else False


def _connections(monitor_url: str, client: str) -> int | None:
    parts = urlsplit(monitor_url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=MONITOR_S_MAX)
    try:
        connection.request("GET", f"/connz?limit=1&mqtt_client={quote(client, safe='')}")
        return int(json.loads(connection.getresponse().read())["num_connections"])
    except (OSError, http.client.HTTPException, ValueError, KeyError):
        return None
    finally:
        connection.close()


def _alarm(count: int, last: str) -> str:
    what = "session was" if count == 1 else "sessions were"
    return (
        f"{count:,} absent MQTT {what} ended, the last {last}: what waited there is gone, and the client has to "
        "subscribe again when it connects; let it read more often or subscribe to less, or raise that setting of "
        "[broker]."
    )
