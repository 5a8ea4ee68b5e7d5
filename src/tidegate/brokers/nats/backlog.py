"""What waits between the brokers' acknowledgement and the tables: how much of it, how old, and what is not known."""

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tidegate.brokers.nats.ingest import INGEST_STREAM, MQTT_STREAM, downstream, slice_stream, source_alarm
from tidegate.brokers.nats.sessions import Sessions
from tidegate.brokers.nats.strays import first_stray_topic
from tidegate.brokers.port import Span
from tidegate.bus.jetstream import NO_MESSAGE_FOUND, Reply, ask, ask_all, seconds_of
from tidegate.bus.wire import Wire
from tidegate.model.backlog import Backlog, SliceBacklog

Taker = tuple[str, str]  # the stream that sources, and the subjects it takes


def spans(wire: Wire, slices: Iterable[int]) -> dict[int, Span]:
    """What each of these slices holds, from its leader, in one round."""
    numbers = list(slices)
    infos = ask_all(wire, [(f"STREAM.INFO.{slice_stream(number)}", None) for number in numbers])
    states = {number: info["state"] for number, info in zip(numbers, infos, strict=True)}
    return {
        number: Span(int(state["first_seq"]), int(state["last_seq"]), int(state["bytes"]))
        for number, state in states.items()
    }


def measure(
    wire: Wire,
    slices: int,
    committed: Mapping[int, int],
    *,
    now_s: float | None = None,
    sessions: Sessions | None = None,
) -> Backlog:
    """What waits between acknowledgement and tables.

    The lag that a sourcing stream reports is 0 while it is not active, so it is not used: what waits upstream
    comes from the consumers that hold the messages. They are asked in the order in which messages flow: one
    that moves on meanwhile is counted twice, never left out.
    """
    of_mqtt, of_ingest = _sourcing_consumers(wire, MQTT_STREAM), _sourcing_consumers(wire, INGEST_STREAM)
    mqtt, *infos = ask_all(wire, [(f"STREAM.INFO.{name}", None) for name in (MQTT_STREAM, *downstream(slices))])
    alarms = [alarm for info in infos if (alarm := source_alarm(info)) is not None]
    upstream, missing = _upstream_waiting({**of_mqtt, **of_ingest}, infos)
    parts, contradictions = [], []
    heads = _heads(wire, infos[1:], committed)
    now_s = time.time() if now_s is None else now_s
    for number, info in enumerate(infos[1:]):
        state, done, head = info["state"], committed.get(number, 0), heads.get(number)
        last = int(state["last_seq"])
        if done > last:
            contradictions.append(
                f"{slice_stream(number)} ends at {last}, but {done} is committed: it was set back, or the tables "
                "belong to other data; a processing node takes it up anew within seconds."
            )
        if last > done and int(state["first_seq"]) > done + 1:
            contradictions.append(
                f"{slice_stream(number)} begins at {state['first_seq']}, but only {done} is committed: what was "
                "between is deleted; a processing node goes on behind it, find out who purged the stream."
            )
        parts.append(
            SliceBacklog(
                slice=number,
                last_sequence=last,
                committed=done,
                head_time_s=head,
                # By one clock, the slice's own: that of whoever asks may differ.
                head_age_s=0.0 if head is None else max(0.0, _clock_s(info, now_s) - head),
            )
        )
    return Backlog(
        slices=tuple(parts),
        upstream_waiting=upstream,
        measured_at_s=now_s,
        alarms=(*alarms, *missing),
        contradictions=tuple(contradictions),
        warnings=_warnings(wire, (mqtt, of_mqtt), (infos[0], of_ingest), sessions or Sessions(), now_s),
    )


def _clock_s(info: Reply, else_s: float) -> float:
    """What time it is for the server that answered."""
    return seconds_of(info["ts"]) if "ts" in info else else_s


def _warnings(
    wire: Wire,
    mqtt: tuple[Reply, Mapping[Taker, Reply]],
    ingest: tuple[Reply, Mapping[Taker, Reply]],
    sessions: Sessions,
    now_s: float,
) -> tuple[str, ...]:
    """What two streams hold beyond what their takers wait for: nobody takes it, so it stays."""
    held = sessions.alarm(wire, mqtt[0]["state"], _taken_later(mqtt[1]), now_s)
    topic = first_stray_topic(wire)
    if topic is None:
        return () if held is None else (held,)
    count = max(1, int(ingest[0]["state"]["messages"]) - _taken_later(ingest[1]))
    stray = (
        f"{INGEST_STREAM} holds about {count:,} messages that no slice can take, the first on the topic "
        f"{topic!r:.120}: 'tidegate up' removes them within seconds and says how many; see that it runs where the "
        "brokers do."
    )
    return (stray,) if held is None else (held, stray)


def _taken_later(consumers: Mapping[Taker, Reply]) -> int:
    return sum(int(one["num_pending"]) + int(one["num_ack_pending"]) for one in consumers.values())


def _upstream_waiting(consumers: Mapping[Taker, Reply], infos: Sequence[Reply]) -> tuple[int, list[str]]:
    """Messages that their slice does not have yet, and a sentence for each consumer that does not serve."""
    waiting, alarms = 0, []
    flights: dict[str, list[tuple[int, int, int]]] = {}
    for name, source in ((info["config"]["name"], source) for info in infos for source in info["sources"]):
        consumer = consumers.get((name, source_filter(source)))
        if consumer is None:
            alarms.append(f"What waits for {name} is unknown, its consumer is gone: start the brokers again.")
            continue
        if not consumer.get("push_bound"):
            # Seen for 10 to 20 s after a restart of a single node, while the source already calls itself active.
            alarms.append(f"{name} takes nothing from {source['name']} at the moment: look again in 20 s.")
        waiting += int(consumer["num_pending"])
        reached, delivered = int(source.get("seq", 0)), int(consumer["delivered"]["stream_seq"])
        if delivered > reached:
            flight = (reached, delivered, int(consumer["num_ack_pending"]))
            flights.setdefault(source["name"], []).append(flight)
    return waiting + sum(in_flight(group) for group in flights.values()), alarms


def source_filter(source: Mapping[str, Any]) -> str:
    """The subjects that a source takes: what tells two sources of the same origin apart."""
    transforms = source.get("subject_transforms") or [{}]
    return str(source.get("filter_subject") or transforms[0].get("src", ""))


def in_flight(group: Sequence[tuple[int, int, int]]) -> int:
    """How many messages at most are delivered from one stream but not stored by the next, over its takers.

    Each taker is (position reached, last delivered, unacknowledged). Most unacknowledged ones are stored already.
    A message has one taker, so all that are missing lie between the lowest position and the last delivered.
    """
    span = max(delivered for _, delivered, _ in group) - min(reached for reached, _, _ in group)
    return min(span, sum(min(unacked, delivered - reached) for reached, delivered, unacked in group))


def _sourcing_consumers(wire: Wire, stream: str) -> dict[Taker, Reply]:
    """The consumers through which other streams source from this one.

    ``$MQTT_msgs`` also has one per persistent subscription, thousands perhaps: ask by name for ours only.
    """
    names: list[str] = []
    offset = 0
    while True:
        page = ask(wire, f"CONSUMER.NAMES.{stream}", {"offset": offset})
        found = page.get("consumers") or []
        names += [name for name in found if name.startswith("JS_SRC_")]
        offset += len(found)
        if not found or offset >= int(page["total"]):
            break
    infos = ask_all(wire, [(f"CONSUMER.INFO.{stream}.{name}", None) for name in names])
    takers = {}
    for info in infos:
        config = info["config"]
        subjects = config.get("filter_subject") or (config.get("filter_subjects") or [""])[0]
        takers[config.get("metadata", {}).get("_nats.src.stream", ""), subjects] = info
    return takers


def _heads(wire: Wire, infos: Sequence[Reply], committed: Mapping[int, int]) -> dict[int, float]:
    """When the first uncommitted message of each slice was stored; the leader says it, a follower may lack it."""
    asked = {
        number: max(committed.get(number, 0) + 1, int(info["state"]["first_seq"]))
        for number, info in enumerate(infos)
        if int(info["state"]["last_seq"]) > committed.get(number, 0)
    }
    replies = ask_all(
        wire,
        [(f"STREAM.MSG.GET.{slice_stream(number)}", {"seq": sequence}) for number, sequence in asked.items()],
        tolerated=frozenset({NO_MESSAGE_FOUND}),
    )
    return {
        number: seconds_of(reply["message"]["time"])
        for number, reply in zip(asked, replies, strict=True)
        if "message" in reply
    }
