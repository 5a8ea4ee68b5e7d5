"""What the broker stores of an MQTT session: a record in ``$MQTT_sess``, and a consumer for each subscription.

The server writes the record anew, under another sequence, whenever its client connects or changes its subscriptions,
and only if nobody else has written meanwhile. So one that is deleted by its sequence was that of a client which had not
come back.
"""

import base64
import json
from collections.abc import Iterable

import msgspec

from tidegate.brokers.nats.ingest import MQTT_STREAM
from tidegate.brokers.nats.subjects import MQTT_SUBJECTS, topic_of
from tidegate.bus.jetstream import NO_MESSAGE_FOUND, STREAM_NOT_FOUND, Reply, ask_all
from tidegate.bus.wire import Wire

SESSION_STREAM = "$MQTT_sess"
SESSION_SUBJECTS = "$MQTT.sess."
PUBREL_STREAM = "$MQTT_out"
CONSUMER_NOT_FOUND = 10014
NO_SUCH_SEQUENCE = 10043
NOT_DELETED = 10057  # the message is no longer there

_ABSENT = frozenset({NO_MESSAGE_FOUND, STREAM_NOT_FOUND})


class SessionRecord(msgspec.Struct, frozen=True, kw_only=True):
    sequence: int
    client: str = ""  # empty where the record cannot be read
    consumers: tuple[str, ...] = ()
    releasing: str = ""  # the consumer for its messages of QoS 2; empty where it has none


def session_of(consumer: str) -> str:
    """A consumer's name begins with that of its session."""
    return consumer.split("_", 1)[0]


def filter_of(subjects: str) -> str:
    """The topic filter that a consumer takes these subjects for."""
    levels = topic_of(subjects.removeprefix(MQTT_SUBJECTS)).split("/")
    return "/".join({"*": "+", ">": "#"}.get(level, level) for level in levels)


def read_record(wire: Wire, session: str) -> SessionRecord | None:
    """None where there is none."""
    asked = (f"STREAM.MSG.GET.{SESSION_STREAM}", {"last_by_subj": f"{SESSION_SUBJECTS}{session}"})
    (found,) = ask_all(wire, [asked], tolerated=_ABSENT)
    return record_of(found["message"]) if "message" in found else None


def record_of(message: Reply) -> SessionRecord:
    sequence = int(message["seq"])
    try:
        said = json.loads(base64.b64decode(message["data"]))
        return SessionRecord(
            sequence=sequence,
            client=str(said["id"]),
            consumers=tuple(str(one["durable_name"]) for one in (said.get("cons") or {}).values()),
            releasing=str((said.get("pubrel") or {}).get("durable_name", "")),
        )
    except (KeyError, ValueError, TypeError, AttributeError):
        return SessionRecord(sequence=sequence)


def delete_record(wire: Wire, record: SessionRecord) -> bool:
    """False where it is no longer the same: the client has come back."""
    asked = (f"STREAM.MSG.DELETE.{SESSION_STREAM}", {"seq": record.sequence, "no_erase": True})
    (deleted,) = ask_all(wire, [asked], tolerated=frozenset({NO_SUCH_SEQUENCE, NOT_DELETED}))
    return "error" not in deleted


def delete_consumers(wire: Wire, names: Iterable[str], releasing: str) -> None:
    """Those that are still there, and with them what only they kept."""
    due = [f"CONSUMER.DELETE.{MQTT_STREAM}.{name}" for name in names]
    if releasing:
        due.append(f"CONSUMER.DELETE.{PUBREL_STREAM}.{releasing}")
    ask_all(wire, [(verb, None) for verb in due], tolerated=frozenset({CONSUMER_NOT_FOUND, STREAM_NOT_FOUND}))
