"""Which absent sessions have to go: a table of what they keep, and who is ended for which bound."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.brokers.sessions import AbsentSession, SessionBounds, bounds_of, to_end
from tidegate.brokers.settings import BrokerSettings
from tidegate.model.errors import UserError

BOUNDS = SessionBounds(
    messages_max=100, bytes_max=1_000, bytes_in_all_max=1_500, subscriptions_in_all_max=10, age_s_max=60.0
)


def one(name: str, messages: int = 0, size: int = 0, oldest_s: float = 0.0, absent_s: float = 0.0) -> AbsentSession:
    return AbsentSession(name=name, messages=messages, bytes=size, oldest_s=oldest_s, absent_s=absent_s)


def with_filters(name: str, subscriptions: int) -> AbsentSession:
    return AbsentSession(name=name, subscriptions=subscriptions)


@pytest.mark.parametrize(
    ("sessions", "in_all", "ended"),
    [
        pytest.param([], 0, [], id="nobody is absent"),
        pytest.param([one("a", 100, 1_000, 60.0, 60.0)], 1_000, [], id="a bound that is reached is not passed"),
        pytest.param([one("a", 101, 10)], 10, [("a", "session_messages_max")], id="too many messages"),
        pytest.param([one("a", 2, 1_001)], 1_001, [("a", "session_bytes_max")], id="few messages that are too large"),
        pytest.param([one("a", 1, 1, 61.0)], 1, [("a", "session_age_s_max")], id="a message that waits for too long"),
        pytest.param([one("a", 0, 0, 61.0)], 0, [], id="the age of a message that was taken counts no more"),
        pytest.param(
            [one("a", absent_s=61.0)], 0, [("a", "session_age_s_max")], id="absent for too long, nothing kept"
        ),
        pytest.param(
            [one("small", 1, 400), one("large", 9, 900), one("middle", 5, 500)],
            1_800,
            [("large", "sessions_bytes_max")],
            id="all together too much: the largest goes, and it is measured anew",
        ),
        pytest.param(
            [one("young", 3, 900, 1.0), one("old", 3, 900, 9.0)],
            1_800,
            [("old", "sessions_bytes_max")],
            id="of two that keep as much the one whose messages are older goes",
        ),
        pytest.param([one("a", 3, 900), one("b", 3, 900)], 900, [], id="the same messages count once"),
        pytest.param([with_filters("a", 4), with_filters("b", 6)], 0, [], id="as many subscriptions as may be"),
        pytest.param(
            [with_filters("few", 2), with_filters("many", 9), with_filters("more", 11), with_filters("one", 1)],
            0,
            [("more", "sessions_subscriptions_max"), ("many", "sessions_subscriptions_max")],
            id="too many subscriptions: those that have most go, until the rest may stay",
        ),
        pytest.param(
            [one("a", 3, 900), one("b", 3, 900), one("c", 101, 50)],
            1_850,
            [("c", "session_messages_max")],
            id="nobody goes for the bound of all while another goes for its own",
        ),
    ],
)
def test_who_is_ended(sessions: list[AbsentSession], in_all: int, ended: list[tuple[str, str]]) -> None:
    assert [(each.session.name, each.setting) for each in to_end(sessions, in_all, BOUNDS)] == ended


@given(st.lists(st.tuples(st.integers(0, 200), st.integers(0, 2_000), st.floats(0, 120), st.floats(0, 120))))
def test_in_the_end_everybody_is_within_every_bound_and_nobody_went_in_vain(
    kept: list[tuple[int, int, float, float]],
) -> None:
    left = [one(str(number), *each) for number, each in enumerate(kept)]
    while going := to_end(left, sum(each.bytes for each in left), BOUNDS):
        in_all = sum(each.bytes for each in left)
        for ending in going:
            gone = ending.session
            assert ending.setting != "sessions_bytes_max" or in_all > BOUNDS.bytes_in_all_max
            assert gone in left
            left.remove(gone)
    assert sum(each.bytes for each in left) <= BOUNDS.bytes_in_all_max
    assert all(each.messages <= 100 and each.bytes <= 1_000 and each.absent_s <= 60 for each in left)


def test_absent_sessions_never_get_more_than_their_share_of_a_small_disk() -> None:
    assert bounds_of(BrokerSettings()).bytes_in_all_max == 1024**3
    assert bounds_of(BrokerSettings(disk_bytes_max=256 * 1024**2)).bytes_in_all_max == 32 * 1024**2


SETTINGS = (
    "session_messages_max",
    "session_bytes_max",
    "session_age_s_max",
    "sessions_bytes_max",
    "sessions_subscriptions_max",
)


@pytest.mark.parametrize("name", SETTINGS)
def test_a_bound_of_nothing_is_refused(name: str) -> None:
    with pytest.raises(UserError, match=f"setting {name} is 0"):
        BrokerSettings(**{name: 0})
