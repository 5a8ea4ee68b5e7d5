"""Whatever sensors say, the published policy stays within its bounds and on its edges."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tidegate.control.policy import Seen
from tidegate.control.send_rate.gotin import Gotin, GotinSettings, GotinState

EDGES = {
    ("idle", "idle"),
    ("idle", "protect"),
    ("protect", "protect"),
    ("protect", "recover"),
    ("recover", "recover"),
    ("recover", "protect"),
    ("recover", "idle"),
}

settings = st.builds(
    GotinSettings,
    default_rate_per_s=st.floats(0.01, 100),
    k_protect=st.floats(0.01, 0.99),
    k_recover=st.floats(1.01, 5),
    iteration_s=st.floats(0.1, 10),
)
rounds = st.lists(
    st.tuples(st.floats(0.01, 20), st.booleans(), st.floats(0, 1e7), st.integers(0, 1_000_000)), max_size=60
)


@given(settings, rounds)
def test_bounds_and_edges(chosen: GotinSettings, told: list[tuple[float, bool, float, int]]) -> None:
    policy, at_s = Gotin(chosen), 0.0
    state = policy.initial()
    for passed_s, overload, departure, devices in told:
        at_s += passed_s
        seen = Seen(
            at_s=at_s,
            measured_at_s=at_s,
            overload=overload,
            waiting=5,
            head_age_s=1.0,
            arrival_per_s=departure,
            departure_per_s=departure,
            devices=devices,
        )
        before = state
        state, verdict = policy.step(before, seen)
        assert (before.phase, state.phase) in EDGES
        assert (state.phase == "protect") == overload
        assert (verdict.rate_per_device is None) == (state.phase == "idle")
        if verdict.rate_per_device is not None:
            assert 0 < verdict.rate_per_device <= chosen.default_rate_per_s
        if state.phase == "recover" and before.phase == "recover":
            assert state.rate_per_device >= before.rate_per_device
        if not overload and before.capacity_per_s is not None:
            assert state.capacity_per_s >= before.capacity_per_s
        assert msgspec.json.decode(msgspec.json.encode(state), type=GotinState) == state
