"""Which absent MQTT sessions keep more than they may: the decision alone, whoever measures and ends them.

A session whose client is away keeps what arrives for it. Each may keep so much, all of them together so much, and none
anything for ever; what passes a bound is ended, as its client would by connecting with a clean session.
"""

from collections.abc import Sequence

import msgspec

from tidegate.brokers.settings import BrokerSettings

DAY_S = 86_400.0
# The brokers store a message several times on its way, and stop acknowledging before their disk is full: sessions that
# nobody reads may not bring them there, however small the disk is.
DISK_SHARE = 8


class SessionBounds(msgspec.Struct, frozen=True, kw_only=True):
    messages_max: int
    bytes_max: int
    bytes_in_all_max: int
    subscriptions_in_all_max: int
    age_s_max: float


class AbsentSession(msgspec.Struct, frozen=True, kw_only=True):
    """What one keeps, by the name that its broker has for it. ``bytes`` is an estimate."""

    name: str
    subscriptions: int = 0  # at QoS 1 or 2, as its broker counts them
    messages: int = 0
    bytes: int = 0
    oldest_s: float = 0.0  # the age of the oldest message that it keeps
    absent_s: float = 0.0  # for how long it is known to be absent: perhaps longer


class Ending(msgspec.Struct, frozen=True, kw_only=True):
    """A session that has to go; ``kept`` says what it did, ``setting`` which bound it passed."""

    session: AbsentSession
    kept: str
    setting: str


def bounds_of(settings: BrokerSettings) -> SessionBounds:
    return SessionBounds(
        messages_max=settings.session_messages_max,
        bytes_max=settings.session_bytes_max,
        bytes_in_all_max=min(settings.sessions_bytes_max, settings.disk_bytes_max // DISK_SHARE),
        subscriptions_in_all_max=settings.sessions_subscriptions_max,
        age_s_max=settings.session_age_s_max,
    )


def to_end(sessions: Sequence[AbsentSession], bytes_in_all: int, bounds: SessionBounds) -> list[Ending]:
    """Those that have to go now, the largest first. ``bytes_in_all`` is what goes if all of them do.

    Sessions may keep the same messages, which are free only when the last of them is gone. So of those that pass
    nothing but the bound for all, one goes at a time, and only if no other goes: then it is measured anew.
    """
    largest_first = sorted(sessions, key=lambda one: (one.bytes, one.messages, one.oldest_s), reverse=True)
    alone = [ending for one in largest_first if (ending := _beyond_its_own(one, bounds)) is not None]
    if alone or not largest_first:
        return alone
    if bytes_in_all > bounds.bytes_in_all_max:
        largest = largest_first[0]
        kept = f"{_megabytes(largest.bytes)} of the {_megabytes(bytes_in_all)} that absent sessions keep together"
        return [Ending(session=largest, kept=kept, setting="sessions_bytes_max")]
    return _too_many_subscriptions(sessions, bounds.subscriptions_in_all_max)


def _too_many_subscriptions(sessions: Sequence[AbsentSession], most: int) -> list[Ending]:
    """A broker has room for so many: the sessions that have most give way until others can subscribe."""
    in_all = left = sum(one.subscriptions for one in sessions)
    endings = []
    for one in sorted(sessions, key=lambda one: (one.subscriptions, one.absent_s), reverse=True):
        if left <= most:
            break
        left -= one.subscriptions
        kept = f"{one.subscriptions:,} of the {in_all:,} subscriptions that absent sessions have together"
        endings.append(Ending(session=one, kept=kept, setting="sessions_subscriptions_max"))
    return endings


def _beyond_its_own(one: AbsentSession, bounds: SessionBounds) -> Ending | None:
    if one.messages > bounds.messages_max:
        return Ending(session=one, kept=f"{one.messages:,} messages", setting="session_messages_max")
    if one.bytes > bounds.bytes_max:
        kept = f"about {_megabytes(one.bytes)} in {one.messages:,} messages"
        return Ending(session=one, kept=kept, setting="session_bytes_max")
    if one.messages and one.oldest_s > bounds.age_s_max:
        kept = f"messages of the last {_days(one.oldest_s)}"
        return Ending(session=one, kept=kept, setting="session_age_s_max")
    if one.absent_s > bounds.age_s_max:
        kept = f"its place for {_days(one.absent_s)}"
        return Ending(session=one, kept=kept, setting="session_age_s_max")
    return None


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


def _days(seconds: float) -> str:
    return f"{seconds / DAY_S:,.1f} days" if seconds >= DAY_S else f"{seconds:,.0f} s"
