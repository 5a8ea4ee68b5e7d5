"""What each absent MQTT session keeps in ``$MQTT_msgs``, from the consumers there, a few pages at a look.

A consumer that nobody listens to is that of a client which is on no broker. How many messages wait there the server
says; what they take, and how old the first is, is judged by the first and the last of them.
"""

import base64
from collections.abc import Sequence

import msgspec

from tidegate.brokers.nats.ingest import MQTT_STREAM
from tidegate.brokers.nats.session_records import session_of
from tidegate.brokers.sessions import AbsentSession
from tidegate.bus.jetstream import NO_MESSAGE_FOUND, Reply, ask, ask_all, seconds_of
from tidegate.bus.wire import Wire

PAGES_MAX = 8  # of 256 consumers, in one look
SAMPLES_MAX = 16  # consumers whose first and last message is fetched in one look; each may have a MiB
RECORD_BYTES = 34  # what the store adds to a message

_ABSENT = frozenset({NO_MESSAGE_FOUND})


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """One subscription of a session."""

    consumer: str
    subjects: str
    messages: int
    floor: int  # everything up to this sequence was taken
    is_bound: bool

    @property
    def session(self) -> str:
        return session_of(self.consumer)


class _Sample(msgspec.Struct, frozen=True):
    floor: int
    messages: int  # as many as there were then
    message_bytes: float
    stored_s: float  # when the oldest was (Unix time)


class Looks:
    """Goes through all consumers again and again. ``absent`` is what the last whole round found."""

    def __init__(self) -> None:
        self.absent: dict[str, list[Waiting]] = {}
        self._offset = 0
        self._found: dict[str, Waiting] = {}
        self._samples: dict[str, _Sample] = {}
        self._since_s: dict[str, float] = {}

    def look(self, wire: Wire, clock_s: float) -> bool:
        """Whether a round is complete; else the next look goes on where this one stopped."""
        for _ in range(PAGES_MAX):
            page = ask(wire, f"CONSUMER.LIST.{MQTT_STREAM}", {"offset": self._offset})
            consumers = page.get("consumers") or []
            self._found.update((one.consumer, one) for each in consumers if (one := _waiting(each)) is not None)
            self._offset += len(consumers)
            if not consumers or self._offset >= int(page["total"]):
                self._settle(clock_s)
                return True
        return False

    def _settle(self, clock_s: float) -> None:
        sessions: dict[str, list[Waiting]] = {}
        for one in self._found.values():
            sessions.setdefault(one.session, []).append(one)
        self.absent = {name: held for name, held in sessions.items() if not any(one.is_bound for one in held)}
        self._samples = {name: one for name, one in self._samples.items() if name in self._found}
        self._since_s = {name: self._since_s.get(name, clock_s) for name in self.absent}
        self._offset, self._found = 0, {}

    def sample(self, wire: Wire) -> None:
        """Fetch the ends of what waits where it is not known, or there is twice as much as then: the most first."""
        due = [one for held in self.absent.values() for one in held if one.messages and self._is_stale(one)]
        due = sorted(due, key=lambda one: one.messages, reverse=True)[:SAMPLES_MAX]
        get = f"STREAM.MSG.GET.{MQTT_STREAM}"
        firsts = [(get, {"seq": one.floor + 1, "next_by_subj": one.subjects}) for one in due]
        lasts = [(get, {"last_by_subj": one.subjects}) for one in due]
        replies = ask_all(wire, [*firsts, *lasts], tolerated=_ABSENT)
        for one, first, last in zip(due, replies[: len(due)], replies[len(due) :], strict=True):
            if "message" in first and "message" in last:
                size = (_bytes_of(first["message"]) + _bytes_of(last["message"])) / 2
                stored_s = seconds_of(first["message"]["time"])
                self._samples[one.consumer] = _Sample(one.floor, one.messages, size, stored_s)

    def _is_stale(self, one: Waiting) -> bool:
        sample = self._samples.get(one.consumer)
        return sample is None or sample.floor != one.floor or one.messages >= 2 * sample.messages

    def measured(self, mean_bytes: float, clock_s: float, now_s: float) -> list[AbsentSession]:
        """Each absent session; ``mean_bytes`` is what a message takes of which nothing else is known."""
        return [self._measured(name, held, mean_bytes, clock_s, now_s) for name, held in self.absent.items()]

    def _measured(
        self, name: str, held: Sequence[Waiting], mean_bytes: float, clock_s: float, now_s: float
    ) -> AbsentSession:
        messages, size, oldest_s = 0, 0.0, 0.0
        for one in held:
            sample = self._samples.get(one.consumer)
            messages += one.messages
            size += one.messages * (mean_bytes if sample is None else sample.message_bytes)
            if sample is not None and sample.floor == one.floor and one.messages:
                oldest_s = max(oldest_s, now_s - sample.stored_s)
        return AbsentSession(
            name=name,
            subscriptions=len(held),
            messages=messages,
            bytes=int(size),
            oldest_s=oldest_s,
            absent_s=clock_s - self._since_s.get(name, clock_s),
        )


def _waiting(consumer: Reply) -> Waiting | None:
    """None where it is none of a session: what slices source through, and what others may have made."""
    config = consumer["config"]
    if not str(config.get("deliver_subject", "")).startswith("$MQTT.sub."):
        return None
    return Waiting(
        consumer=str(consumer["name"]),
        subjects=str(config.get("filter_subject", "")),
        messages=int(consumer["num_pending"]) + int(consumer["num_ack_pending"]),
        floor=int(consumer["ack_floor"]["stream_seq"]),
        is_bound=bool(consumer.get("push_bound")),
    )


def _bytes_of(message: Reply) -> int:
    parts = (base64.b64decode(message.get(part, "")) for part in ("data", "hdrs"))
    return RECORD_BYTES + len(message["subject"]) + sum(map(len, parts))
