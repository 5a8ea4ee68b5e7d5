"""The credit pool, step by step, against values computed by hand from its formula."""

import pytest

from tidegate.control.policy import Seen
from tidegate.control.send_rate.credits import Credits, CreditsSettings, CreditsState

POLICY = Credits(
    CreditsSettings(
        default_rate_per_s=2.0,
        target_delay_s=0.5,
        alpha=0.05,
        beta=0.1,
        overcommitment=0.5,
        min_share=0.02,
        period_s=2.0,
    )
)


def seen(
    at_s: float,
    *,
    delay_s: float,
    arrival: float = 1e6,
    devices: int = 100,
    each: float | None = None,
    nodes_working: int = 4,
) -> Seen:
    return Seen(
        at_s=at_s,
        measured_at_s=at_s,
        overload=False,
        waiting=4,
        head_age_s=delay_s,
        arrival_per_s=arrival,
        departure_per_s=0.0,
        devices=devices,
        nodes_working=nodes_working,
        node_rate_per_s=each,
    )


FULL = CreditsState(stepped_at_s=10.0)
POOL = CreditsState(credits=100.0, stepped_at_s=10.0)


@pytest.mark.parametrize(
    ("before", "now", "credits", "rate"),
    [
        pytest.param(CreditsState(), seen(0, delay_s=0.4), None, None, id="a full pool stays full below the target"),
        # 100 devices * 2 msg/s * 2 s = 400; 1 - 0.1 * (1.5 - 0.5) / 0.5 = 0.8
        pytest.param(CreditsState(), seen(0, delay_s=1.5), 320.0, 1.6, id="a full pool shrinks by the excess"),
        pytest.param(FULL, seen(12, delay_s=0.5), 400.0, None, id="at the target nothing is taken yet"),
        pytest.param(POOL, seen(12, delay_s=1.5), 80.0, 0.4, id="the pool shrinks by the excess"),
        pytest.param(POOL, seen(12, delay_s=60.0), 50.0, 0.25, id="one bad delay takes at most half"),
        # A = 0.05 * 100
        pytest.param(POOL, seen(12, delay_s=0.1), 105.0, 0.525, id="below the target it grows with the fleet"),
        pytest.param(
            CreditsState(credits=10.0, stepped_at_s=10.0),
            seen(12, delay_s=0.1, devices=10),
            11.0,
            0.55,
            id="and by one credit at least",
        ),
        pytest.param(
            CreditsState(credits=396.0, stepped_at_s=10.0), seen(12, delay_s=0.1), None, None, id="until it is full"
        ),
        pytest.param(POOL, seen(11, delay_s=60.0), 100.0, 0.5, id="one step per period"),
        # head 1.5 s old, of which 1 s is its own service: 0.5 s is the target
        pytest.param(POOL, seen(12, delay_s=1.5, each=1.0), 100.0, 0.5, id="its own service is no queueing delay"),
        # (105 + 0.5 * (105 - 30 * 2)) / 100 / 2
        pytest.param(
            POOL, seen(12, delay_s=0.1, arrival=30.0), 105.0, 0.6375, id="credits that nobody uses are issued again"
        ),
        # 0.02 * 400
        pytest.param(
            CreditsState(credits=9.0, stepped_at_s=10.0),
            seen(12, delay_s=60.0),
            8.0,
            0.04,
            id="the pool stays at what devices are told at least",
        ),
        pytest.param(
            CreditsState(credits=9.0, stepped_at_s=10.0),
            seen(12, delay_s=60.0, nodes_working=9),
            9.0,
            0.045,
            id="and has a credit for every node",
        ),
        # 10 devices can use 40 credits
        pytest.param(
            POOL, seen(12, delay_s=60.0, devices=10), 20.0, 1.0, id="credits of devices that left are gone first"
        ),
        pytest.param(POOL, seen(11, delay_s=0.1, devices=0), 100.0, None, id="without devices nobody is held"),
    ],
)
def test_one_step(before: CreditsState, now: Seen, credits: float | None, rate: float | None) -> None:
    state, verdict = POLICY.step(before, now)
    assert state.credits == (None if credits is None else pytest.approx(credits))
    assert verdict.rate_per_device == (None if rate is None else pytest.approx(rate))
    assert verdict.phase == ("idle" if rate is None else "protect")
