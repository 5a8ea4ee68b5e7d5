"""Sessions that keep no message, only their record in ``$MQTT_sess``: which of them nobody has used for too long.

The stream has the records in the order in which clients connected last, so the old ones are its first. A few are looked
at each time. That a client connected long ago does not mean that it left then: what counts is for how long it has been
seen absent since, and that begins anew with this process.
"""

from collections.abc import Callable

from tidegate.brokers.nats.session_records import SESSION_STREAM, SESSION_SUBJECTS, record_of
from tidegate.brokers.sessions import AbsentSession
from tidegate.bus.jetstream import NO_MESSAGE_FOUND, STREAM_NOT_FOUND, ask_all, seconds_of
from tidegate.bus.wire import Wire

RECORDS_MAX = 8  # in one look

IsConnected = Callable[[str], bool | None]


class IdleRecords:
    """``look`` goes through all old records again and again."""

    def __init__(self) -> None:
        self._next = 1  # sequence
        self._since_s: dict[int, float] = {}  # by a record's sequence: another one means that its client came back
        self._found: dict[int, float] = {}  # in the round that has begun

    def look(
        self, wire: Wire, is_connected: IsConnected, age_s_max: float, clock_s: float, now_s: float
    ) -> list[AbsentSession]:
        """The absent ones among those that were looked at."""
        absent = []
        for _ in range(RECORDS_MAX):
            asked = (f"STREAM.MSG.GET.{SESSION_STREAM}", {"seq": self._next, "next_by_subj": f"{SESSION_SUBJECTS}>"})
            (found,) = ask_all(wire, [asked], tolerated=frozenset({NO_MESSAGE_FOUND, STREAM_NOT_FOUND}))
            message = found.get("message")
            if message is None or now_s - seconds_of(message["time"]) <= age_s_max:
                self._next, self._since_s, self._found = 1, self._found, {}
                break
            record = record_of(message)
            connected = is_connected(record.client) if record.client and not record.consumers else True
            if connected is None:
                break  # a broker does not answer: later
            self._next = record.sequence + 1
            if not connected:
                since_s = self._found[record.sequence] = self._since_s.get(record.sequence, clock_s)
                name = str(message["subject"]).removeprefix(SESSION_SUBJECTS)
                absent.append(AbsentSession(name=name, absent_s=clock_s - since_s))
        return absent
