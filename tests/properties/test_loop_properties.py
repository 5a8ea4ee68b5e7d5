"""Whatever sensors and people say: rates are finite, expressions hold or are refused, plans stay within bounds."""

import math

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tidegate.controller.settings import ControllerSettings
from tidegate.loop.expressions import Expression
from tidegate.loop.monitors import measured, names
from tidegate.loop.state import LoopState
from tidegate.loop.window import Window
from tidegate.model.actions import Advise
from tidegate.model.advice import INTERVAL_S_MAX
from tidegate.model.decisions import Mode
from tidegate.model.errors import UserError
from tidegate.model.observations import Observation

words = st.sampled_from(
    [*names(), "and", "or", "not", "<", ">=", "==", "+", "-", "*", "/", "(", ")", "0", "1.5", "if", "x", ".real"]
)
values = st.floats(-1e12, 1e12)
observations = st.lists(
    st.builds(
        Observation,
        at_s=st.integers(-20_000_000, 20_000_000).map(lambda us: us / 1e6),  # no clock tells less than a microsecond
        arrived=st.integers(0, 10_000),
        committed=st.integers(0, 10_000),
        head_age_s=st.floats(0, 1e6),
        devices=st.integers(0, 100_000),
    ),
    max_size=40,
)
modes = st.builds(Mode, send_rate=st.sampled_from(["acting", "shadow", "off"]), frozen=st.booleans())


@given(st.lists(words, max_size=12).map(" ".join), st.fixed_dictionaries(dict.fromkeys(names(), values)))
def test_a_text_is_refused_in_a_sentence_or_has_a_truth(text: str, properties: dict[str, float]) -> None:
    try:
        expression = Expression(text, names(), "here")
    except UserError:
        return
    assert expression.holds(properties) in (True, False)


@given(observations)
def test_rates_are_finite_and_not_negative(seen: list[Observation]) -> None:
    window = Window(3.0)
    for observation in seen:
        window.add(observation)
        found = measured(observation, window, 0.0)["chain"]
        assert set(found) <= set(names())
        assert all(math.isfinite(value) and value >= 0 for value in found.values())


@given(st.lists(st.tuples(st.floats(0, 3), observations.filter(len).map(lambda seen: seen[0]), modes), max_size=40))
def test_plans_stay_within_bounds(rounds: list[tuple[float, Observation, Mode]]) -> None:
    settings = ControllerSettings(overload="head_age_s > 1")
    loop, at_s = settings.control_loop(), 0.0
    for passed_s, observation, mode in rounds:
        at_s += passed_s
        outcome = loop.tick(msgspec.structs.replace(observation, at_s=at_s), mode)
        loop.carried_out(outcome.proposals)
        assert len(outcome.proposals) <= 1
        for proposal in outcome.proposals:
            assert not mode.frozen
            assert proposal.acts == (mode.send_rate != "shadow")
            assert proposal.recorded or proposal.acts
            action = proposal.action
            assert isinstance(action, Advise)
            advice = action.advice
            assert advice.interval_s == 0 or settings.default_interval_s < advice.interval_s
            assert advice.interval_s <= advice.lifetime_s <= INTERVAL_S_MAX
            assert mode.send_rate != "off" or advice.interval_s == 0
        assert msgspec.json.decode(msgspec.json.encode(loop.state), type=LoopState) == loop.state
