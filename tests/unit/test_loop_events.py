"""Events: how long something has to hold, of how many, and what ends it."""

import pytest

from tidegate.loop.events import Event, EventRule, EventState
from tidegate.loop.knowledge import Knowledge, Properties
from tidegate.model.errors import UserError


def knowledge(at_s: float, **sources: Properties) -> Knowledge:
    properties = {source.replace("_", "/", 1): found for source, found in sources.items()}
    return Knowledge(at_s=at_s, measured_at_s=at_s, complete=True, properties=properties)


def history(rule: EventRule, *looks: tuple[float, float | None]) -> list[float]:
    """The moments at which the event is under way, of moments and ages of the oldest message."""
    event, state, active = Event(rule), EventState(), []
    for at_s, age_s in looks:
        state = event.step(state, knowledge(at_s, chain={} if age_s is None else {"head_age_s": age_s}))
        active += [at_s] if state.active else []
    return active


OLD = EventRule(when="head_age_s > 1", for_s=1.0)


def test_it_begins_after_its_duration_and_ends_at_once() -> None:
    looks = ((0.0, 2.0), (0.5, 2.0), (0.7, 0.0), (1.0, 2.0), (1.9, 2.0), (2.0, 2.0), (3.0, 2.0), (3.5, 0.0), (4.0, 2.0))
    assert history(OLD, *looks) == [2.0, 3.0]


def test_a_peak_that_is_shorter_than_the_duration_raises_nothing() -> None:
    peaks = [(float(second), 9.0 if second % 3 == 0 else 0.0) for second in range(60)]
    assert history(EventRule(when="head_age_s > 1", for_s=1.5), *peaks) == []


def test_it_is_resolved_by_what_ends_it_for_as_long() -> None:
    rule = EventRule(when="head_age_s > 5", until="head_age_s < 1", until_for_s=2.0)
    looks = ((0.0, 6.0), (1.0, 3.0), (2.0, 0.5), (3.0, 3.0), (4.0, 0.5), (5.0, 0.5), (6.0, 0.5), (7.0, 0.5))
    assert history(rule, *looks) == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def test_what_is_not_known_neither_begins_nor_ends_it() -> None:
    assert history(OLD, (0.0, 2.0), (1.0, None), (2.0, 2.0), (3.0, None), (4.0, None), (5.0, 0.0)) == [2.0, 3.0, 4.0]


HOT, COLD, SILENT = {"connections": 900.0}, {"connections": 10.0}, {"healthy": 1.0}


@pytest.mark.parametrize(
    ("need", "brokers", "active"),
    [
        pytest.param("any", (COLD, HOT, COLD), True, id="any: one is enough"),
        pytest.param("any", (COLD, COLD, SILENT), None, id="any: it may be the one that is silent"),
        pytest.param("all", (HOT, HOT, COLD), False, id="all: one is missing"),
        pytest.param("all", (HOT, HOT, HOT), True, id="all"),
        pytest.param("all", (HOT, HOT, SILENT), None, id="all: one is silent"),
        pytest.param("all", (), None, id="all of nobody"),
        pytest.param("mean", (), None, id="the mean of nobody"),
        pytest.param(2, (HOT, COLD, HOT), True, id="two of three"),
        pytest.param(2, (HOT, COLD, COLD), False, id="one of three"),
        pytest.param(2, (HOT, COLD, SILENT), None, id="one of three, and one is silent"),
        pytest.param("mean", (HOT, COLD, COLD), True, id="mean: 307 of more than 300"),
        pytest.param("mean", (HOT, COLD, COLD, COLD), False, id="mean: 232"),
        pytest.param("mean", (HOT, SILENT), True, id="mean of those that are known"),
    ],
)
@pytest.mark.parametrize("before", [False, True])
def test_of_a_group(need: str | int, brokers: tuple[Properties, ...], active: bool | None, before: bool) -> None:
    event = Event(EventRule(when="connections > 300", of="brokers", need=need))  # type: ignore[arg-type]
    known = knowledge(1.0, **{f"broker_{number}": found for number, found in enumerate(brokers)})
    assert event.step(EventState(active=before), known).active is (before if active is None else active)


def test_a_property_of_another_kind_of_source_is_refused_by_name() -> None:
    with pytest.raises(UserError, match=r"^when names head_age_s, which is no property"):
        EventRule(when="head_age_s > 1", of="brokers")
