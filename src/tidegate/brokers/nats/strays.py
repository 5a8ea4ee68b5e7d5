"""Messages that the brokers acknowledged and that no slice can take: found, removed and told of.

A topic with a level that is exactly ``*`` or ``>`` is legal in MQTT. To NATS it is a subject with a wildcard in it,
which it stores all the same. But no transform matches it: such a message goes to ``INGEST`` under the subject it came
with, which is no slice's, or (``telemetry/>/x``) perhaps not even there. Nobody would ever delete it from these
streams. Gateways refuse such topics, so these are messages of clients that connect to a broker itself.

Removal is careful, because a wildcard in a request means more than the one message: from ``INGEST`` goes what is not
``tg.…``, and from ``$MQTT_msgs`` single messages by their sequence, whose subject was looked at.
"""

import time
from collections.abc import Callable

from tidegate.brokers.nats.ingest import INGEST_STREAM, MQTT_STREAM
from tidegate.brokers.nats.subjects import MQTT_SUBJECTS, topic_of
from tidegate.bus.jetstream import NO_MESSAGE_FOUND, Reply, ask, ask_all
from tidegate.bus.wire import Wire
from tidegate.model.readings import TELEMETRY

UNTAKEN = "$MQTT.>"  # in INGEST: what a slice takes begins with ``tg.``
NO_SUCH_SEQUENCE = 10043
ALARM_S = 3_600.0
RENEWED_S = 60.0  # a sentence with a count in it is said anew this often at most
WINDOW = 32  # messages at the head of ``$MQTT_msgs`` that are looked at together; each may have a MiB
REMOVING_S_MAX = 0.25  # of one call

_ABSENT = frozenset({NO_MESSAGE_FOUND})


def first_stray_topic(wire: Wire) -> str | None:
    """On which topic the first message was published that ``INGEST`` holds for no slice."""
    found = ask_all(wire, [(f"STREAM.MSG.GET.{INGEST_STREAM}", {"seq": 1, "next_by_subj": UNTAKEN})], tolerated=_ABSENT)
    return _topic(found[0]["message"]["subject"]) if "message" in found[0] else None


class Strays:
    """Call ``remove`` every second or so, from one place."""

    def __init__(self, wire: Wire, clock: Callable[[], float] = time.monotonic) -> None:
        self._wire = wire
        self._clock = clock
        self._head = 0  # first sequence of ``$MQTT_msgs`` at the last call
        self._clean = 0  # the head whose whole window had none
        self._removed = 0
        self._topic = ""
        self._last_s = 0.0
        self._sentence = ""
        self._said_s = 0.0

    def remove(self, mqtt: Reply) -> str | None:
        """``mqtt`` is the state of ``$MQTT_msgs``. An alarm for an hour after the last one went, or None."""
        removed = self._from_ingest() + self._from_mqtt(mqtt)
        now_s = self._clock()
        if removed:
            self._removed += removed
            self._last_s = now_s
        if not self._removed or now_s - self._last_s > ALARM_S:
            return None
        if not self._sentence or now_s - self._said_s >= RENEWED_S:
            self._sentence, self._said_s = _alarm(self._removed, self._topic), now_s
        return self._sentence

    def _from_ingest(self) -> int:
        topic = first_stray_topic(self._wire)
        if topic is None:
            return 0
        self._topic = topic
        return int(ask(self._wire, f"STREAM.PURGE.{INGEST_STREAM}", {"filter": UNTAKEN})["purged"])

    def _from_mqtt(self, state: Reply) -> int:
        """A message that nobody takes stays first in its stream. One that somebody waits for may do so, too."""
        first, last = int(state["first_seq"]), int(state["last_seq"])
        stuck, self._head = first == self._head, first
        if not stuck or first == self._clean or not int(state["messages"]):
            return 0
        removed, until_s = 0, self._clock() + REMOVING_S_MAX
        while found := self._delete(range(first, min(last + 1, first + WINDOW))):
            removed += found
            state = ask(self._wire, f"STREAM.INFO.{MQTT_STREAM}")["state"]
            first, last = int(state["first_seq"]), int(state["last_seq"])
            if self._clock() > until_s:
                break
        else:
            if last >= first + WINDOW - 1:
                self._clean = first
        self._head = first
        return removed

    def _delete(self, window: range) -> int:
        replies = ask_all(
            self._wire, [(f"STREAM.MSG.GET.{MQTT_STREAM}", {"seq": number}) for number in window], tolerated=_ABSENT
        )
        subjects = {
            number: reply["message"]["subject"]
            for number, reply in zip(window, replies, strict=True)
            if "message" in reply
        }
        due = [number for number, subject in subjects.items() if _is_stray(subject)]
        if due:
            self._topic = _topic(subjects[due[-1]])
        ask_all(
            self._wire,
            [(f"STREAM.MSG.DELETE.{MQTT_STREAM}", {"seq": number, "no_erase": True}) for number in due],
            tolerated=_ABSENT | {NO_SUCH_SEQUENCE},
        )
        return len(due)


def _is_stray(subject: str) -> bool:
    levels = subject.removeprefix(MQTT_SUBJECTS).split(".")
    return levels[0] == TELEMETRY and ("*" in levels or ">" in levels)


def _topic(subject: str) -> str:
    return topic_of(subject.removeprefix(MQTT_SUBJECTS))


def _alarm(count: int, topic: str) -> str:
    what = "message was" if count == 1 else "messages were"
    return (
        f"{count:,} acknowledged {what} removed from the brokers unread, the last on the topic {topic!r:.120}: no "
        "slice can take a topic with a level that is exactly * or >; give that device another name, and let it connect "
        "to a gateway, which refuses such topics."
    )
