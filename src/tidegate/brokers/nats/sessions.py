"""Who keeps messages in ``$MQTT_msgs`` that the slices have taken already: MQTT sessions that do not fetch theirs.

A persistent session (clean session 0) with a subscription at QoS 1 has a consumer there, and every message that matches
stays until the session took it. Absent ones are ended when they keep too much (``session_quotas``). One that is
connected and acknowledges nothing is not: the server sends it no more than 1,024 messages, and keeps the rest.
"""

from contextlib import suppress

import msgspec

from tidegate.brokers.nats.ingest import MQTT_STREAM
from tidegate.brokers.nats.session_records import filter_of, read_record, session_of
from tidegate.bus.jetstream import Reply, ask
from tidegate.bus.wire import Wire
from tidegate.model.errors import BrokerUnavailableError

# From here on it is asked who keeps them: what a busy system has on its way to subscribers is less.
KEPT_MIN = 10_000
KEPT_BYTES_MIN = 64 * 1024**2
# There may be a consumer per subscription of each client: so many pages of 256 are read in one look, the rest in the
# next ones, and when all were read it is some time until it begins anew.
PAGES_MAX = 8
REST_S = 30.0


class _Holder(msgspec.Struct, frozen=True):
    waiting: int
    name: str
    subjects: str
    is_connected: bool


class Sessions:
    """Asked again and again over one connection, it goes through all consumers and knows who keeps most."""

    def __init__(self) -> None:
        self._offset = 0
        self._found: _Holder | None = None  # in the round that has begun
        self._known: _Holder | None = None  # in the last whole one
        self._due_s = 0.0
        self._client = ("", "")  # the consumer that was asked for, and whose it is

    def alarm(self, wire: Wire, state: Reply, waiting: int, now_s: float) -> str | None:
        """``state`` is that of ``$MQTT_msgs``, of which so many messages wait for the slices."""
        messages = int(state["messages"])
        kept = messages - waiting
        kept_bytes = int(state["bytes"]) * kept // max(1, messages)
        if kept < KEPT_MIN and kept_bytes < KEPT_BYTES_MIN:
            self._offset, self._found, self._known, self._due_s = 0, None, None, 0.0
            return None
        if now_s >= self._due_s or now_s < self._due_s - REST_S:
            with suppress(BrokerUnavailableError):  # however many sessions there are, the figures can be told
                self._look(wire, now_s)
        holder = max(
            (one for one in (self._found, self._known) if one is not None), key=lambda one: one.waiting, default=None
        )
        return None if holder is None else self._sentence(wire, kept, kept_bytes, holder)

    def _look(self, wire: Wire, now_s: float) -> None:
        for _ in range(PAGES_MAX):
            page = ask(wire, f"CONSUMER.LIST.{MQTT_STREAM}", {"offset": self._offset})
            consumers = page.get("consumers") or []
            for consumer in consumers:
                holder = _holder(consumer)
                if holder.waiting > (0 if self._found is None else self._found.waiting):
                    self._found = holder
            self._offset += len(consumers)
            if not consumers or self._offset >= int(page["total"]):
                self._known, self._found, self._offset, self._due_s = self._found, None, 0, now_s + REST_S
                return

    def _sentence(self, wire: Wire, kept: int, kept_bytes: int, holder: _Holder) -> str:
        if self._client[0] != holder.name:
            record = read_record(wire, session_of(holder.name))
            self._client = (holder.name, "" if record is None else record.client)
        who = f"client {self._client[1]!r:.120}" if self._client[1] else "an unknown client"
        where = "connected, but slow" if holder.is_connected else "not connected"
        topic_filter = filter_of(holder.subjects)
        return (
            f"The brokers keep about {_rounded(kept):,} messages ({kept_bytes / 1e6:,.0f} MB) only for MQTT sessions "
            f"that have not taken them, most for {who} ({where}, subscription {topic_filter!r:.120}, consumer "
            f"{holder.name}): let it connect and read, or connect once under its name with a clean session, which "
            "ends the old one; else they fill the disk."
        )


def _holder(consumer: Reply) -> _Holder:
    name, config = str(consumer["name"]), consumer["config"]
    waiting = 0 if name.startswith("JS_SRC_") else int(consumer["num_pending"]) + int(consumer["num_ack_pending"])
    return _Holder(waiting, name, str(config.get("filter_subject", "")), bool(consumer.get("push_bound")))


def _rounded(count: int) -> int:
    """To two digits, so that an alarm does not read differently each time."""
    unit = int(10 ** max(0, len(str(count)) - 2))
    return count // unit * unit
