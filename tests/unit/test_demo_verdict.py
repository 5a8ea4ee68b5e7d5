"""The demo's verdict from tables whose ages are known by construction."""

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from rich.console import Console

from tidegate.demo.script import Script, slowness
from tidegate.demo.story import Story, sparkline
from tidegate.demo.verdict import Act, Figures, by_second, checks, figures, rate

BEGAN_S = 1_000.0


def rows(*messages: tuple[float, float, int]) -> pa.Table:
    """(taken, committed, count) of each message, in seconds after the beginning."""
    taken, committed, count = zip(*messages, strict=True)
    return pa.table(
        {
            "taken_s": np.array(taken, float) + BEGAN_S,
            "committed_s": np.array(committed, float) + BEGAN_S,
            "count": pa.array(count, pa.int64()),
        }
    )


def act(*, advised_s: float | None = None, lost: int = 0, kept: bool = True, acknowledged: int = 5) -> Act:
    return Act(
        name="act",
        protected=advised_s is not None,
        began_s=BEGAN_S,
        flood_from_s=BEGAN_S + 2,
        flood_to_s=BEGAN_S + 12,
        ended_s=BEGAN_S + 20,
        advised_s=None if advised_s is None else BEGAN_S + advised_s,
        interval_s_max=1.5,
        interval_s_end=0.0,
        fleet={"sent": 4, "samples": 9, "kept_schedule": kept},
        acknowledged=acknowledged,
        lost=lost,
        duplicated=0,
    )


def test_ages_count_readings_of_the_flood_not_messages_of_the_calm() -> None:
    found = figures(act(), rows((1, 9, 1), (3, 4, 1), (5, 9, 3)))
    assert found.age_s_mean == pytest.approx((1 * 1 + 4 * 3) / 4)
    assert found.age_s_worst == 4
    assert (found.messages, found.readings) == (2, 4)


def test_what_the_next_act_commits_is_not_counted_twice() -> None:
    messages = rows((18, 19.9, 1), (19, 20.0, 1), (20.1, 20.3, 1))
    assert sum(second["messages"] for second in by_second(act(), messages)) == 2
    following = msgspec.structs.replace(act(), began_s=BEGAN_S + 20.05, ended_s=BEGAN_S + 30)
    assert sum(second["messages"] for second in by_second(following, messages)) == 1


@pytest.mark.parametrize(
    ("committed_s", "expected"),
    [([], 0.0), ([3.0, 3.0], 0.0), ([3.0, 3.0, 4.0, 5.0, 5.0, 99.0], 1.5)],
    ids=["nothing", "one batch", "from the first commit to the last within the span"],
)
def test_a_rate_is_measured_from_commit_to_commit(committed_s: list[float], expected: float) -> None:
    assert rate(np.array(committed_s), 2.0, 10.0) == pytest.approx(expected)


def test_a_protected_act_is_busy_from_the_first_advice_on() -> None:
    batches = rows(*((3, second, 1) for second in (5.5, 7.0, 8.0, 8.0, 9.0)))
    assert figures(act(), batches).processed_per_s == pytest.approx(4 / 3.5, abs=0.1)
    assert figures(act(advised_s=6.5), batches).processed_per_s == pytest.approx(3 / 2, abs=0.1)


def verdict(without_age_s: float, protected_age_s: float, **changes: object) -> dict[str, bool]:
    without = figures(act(), rows((3, 3 + without_age_s, 1), *((3, second, 1) for second in (5, 6, 7, 8))))
    protected = figures(act(advised_s=4.0, **changes), rows((3, 3 + protected_age_s, 1)))  # type: ignore[arg-type]
    return {check.name: check.holds for check in checks(without, protected)}


def test_each_check_can_fail() -> None:
    assert verdict(10.0, 9.0)["delay_ratio"] is False
    assert verdict(10.0, 0.1)["delay_ratio"] is True
    assert verdict(10.0, 0.1)["capacity_used"] is False  # one batch is no work
    assert verdict(10.0, 0.1, lost=1)["ledger_exact"] is False
    assert verdict(10.0, 0.1, acknowledged=0)["ledger_exact"] is False
    assert verdict(10.0, 0.1, kept=False)["fleet_kept_schedule"] is False


def test_the_seconds_add_up_to_the_whole() -> None:
    messages = rows((1, 3.2, 1), (3, 4.1, 2), (5, 4.9, 3), (5, 19.9, 1))
    seconds = by_second(act(), messages)
    assert sum(second["messages"] for second in seconds) == 4
    assert sum(second["readings"] for second in seconds) == 7
    assert seconds[4]["age_s_sum"] == pytest.approx(1.1 * 2 - 0.1 * 3)


def test_both_acts_play_the_same_flood() -> None:
    script = Script()
    for calm_s in (script.calm_s, script.pause_s):
        points = {
            float(second) - calm_s: int(devices)
            for second, devices in (point.split(":") for point in script.pattern(calm_s).split(","))
        }
        assert points[script.ramp_s] == points[script.ramp_s + script.flood_s] == script.flood_devices
        assert script.flood(calm_s) == (calm_s, calm_s + script.ramp_s + script.flood_s)
        assert max(points) == script.seconds(calm_s) - calm_s


def test_protection_that_did_not_help_is_said_so() -> None:
    console = Console(record=True, width=120, file=None, quiet=False, force_terminal=False)
    one = figures(act(), rows((3, 5, 1)))
    worse = figures(act(advised_s=3.0), rows((3, 9, 1)))
    with console.capture() as said:
        Story(console).verdict(one, worse)
    assert "did not help" in said.get()
    assert isinstance(one, Figures)


def test_the_verdict_says_that_the_node_is_slow_on_purpose() -> None:
    one = figures(act(), rows((3, 4, 1)))
    console = Console(width=160)
    with console.capture() as captured:
        Story(console).verdict(one, one)
    assert "The processing node is slow on purpose: it waits 1 ms over each record" in captured.get()
    assert "it waits 0.5 ms over each record" in slowness(growing=True)


def test_a_sparkline_starts_at_zero() -> None:
    assert sparkline([0.0, 4.0, 8.0]) == "▁▅█"
    assert sparkline([0.1, 0.1]) == "▁▁"
