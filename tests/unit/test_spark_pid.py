"""Spark's estimator, step by step, against values computed by hand from its formula."""

import pytest

from tidegate.control.policy import Seen
from tidegate.control.send_rate.spark_pid import SparkPid, SparkPidSettings, SparkPidState

POLICY = SparkPid(SparkPidSettings(default_rate_per_s=2.0, min_share=0.05, iteration_s=1.0))


def seen(
    at_s: float,
    *,
    delay_s: float = 0.0,
    each: float | None = 5.0,
    departure: float = 0.0,
    overload: bool = False,
    devices: int = 100,
) -> Seen:
    """Four nodes; the head is older than its delay by one service time."""
    return Seen(
        at_s=at_s,
        measured_at_s=at_s,
        overload=overload,
        waiting=4,
        head_age_s=delay_s + (1 / each if each else 0.0),
        arrival_per_s=0.0,
        departure_per_s=departure,
        devices=devices,
        nodes_working=4,
        node_rate_per_s=each,
    )


FIRST = SparkPidState(rate_per_s=30.0, processing_per_s=30.0, stepped_at_s=10.0)
RUNNING = SparkPidState(rate_per_s=30.0, error_per_s=5.0, processing_per_s=30.0, limits=True, stepped_at_s=10.0)


@pytest.mark.parametrize(
    ("before", "now", "total", "rate"),
    [
        pytest.param(SparkPidState(), seen(10.0), 20.0, None, id="the first step measures and limits nothing"),
        pytest.param(SparkPidState(), seen(10.0, each=None), None, None, id="nothing processed is no first step"),
        # 30 - 1 * (30 - 20) - 0.2 * 0
        pytest.param(FIRST, seen(11.0), 20.0, 0.2, id="the second step limits to what is processed"),
        # 30 - 10 - 0.2 * 2 * 20
        pytest.param(RUNNING, seen(11.0, delay_s=2.0), 12.0, 0.12, id="a delay is worked off"),
        # 30 - 10 - 0.2 * 50 * 20 < 0.05 * 2 * 100
        pytest.param(RUNNING, seen(11.0, delay_s=50.0), 10.0, 0.1, id="the least rate scales with the fleet"),
        pytest.param(RUNNING, seen(11.0, each=100.0), 400.0, None, id="more than the default holds nobody"),
        pytest.param(RUNNING, seen(10.5, each=1.0), 30.0, 0.3, id="no step before the batch interval is over"),
        pytest.param(
            RUNNING, seen(12.0, each=None), 30.0, 0.3, id="an idle node proves nothing: the limit stays in force"
        ),
        pytest.param(
            RUNNING,
            seen(12.0, each=None, departure=25.0, overload=True),
            25.0,
            0.25,
            id="without the nodes' word the departure rate of an overload counts",
        ),
        pytest.param(
            RUNNING, seen(12.0, each=None, departure=25.0), 30.0, 0.3, id="and that of a calm moment does not"
        ),
        pytest.param(RUNNING, seen(10.5, devices=50), 30.0, 0.6, id="fewer devices share the same limit"),
        pytest.param(RUNNING, seen(11.0, devices=0), 20.0, None, id="without devices nobody is held"),
    ],
)
def test_one_step(before: SparkPidState, now: Seen, total: float | None, rate: float | None) -> None:
    state, verdict = POLICY.step(before, now)
    assert state.rate_per_s == (None if total is None else pytest.approx(total))
    assert verdict.rate_per_device == (None if rate is None else pytest.approx(rate))
    assert verdict.phase == ("idle" if rate is None else "protect")
    assert verdict.capacity_per_s == state.processing_per_s


def test_all_three_terms() -> None:
    policy = SparkPid(SparkPidSettings(proportional=0.5, integral=0.1, derivative=0.4, iteration_s=2.0))
    state, _ = policy.step(RUNNING, seen(14.0, delay_s=3.0))
    # e = 30 - 20 = 10, H = 3 * 20 / 2 = 30, D = (10 - 5) / 4 = 1.25
    assert state.rate_per_s == pytest.approx(30 - 0.5 * 10 - 0.1 * 30 - 0.4 * 1.25)
    assert state.error_per_s == pytest.approx(10.0)
