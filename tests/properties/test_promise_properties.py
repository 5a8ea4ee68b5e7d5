"""What is promised holds for every policy that is registered, whatever is seen."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from looks import CLASSES, Look, looks, observations
from tidegate.controller.settings import ControllerSettings
from tidegate.loop.families import family_of
from tidegate.loop.policies import registry
from tidegate.model.actions import Advise
from tidegate.model.decisions import MODES, Mode, Proposal

POLICIES = sorted(set(registry.NAMES) - {"oracle"})  # which asks a simulated world, and is never shipped


def proposals(policy: str, seen: list[Look], modes: list[Mode]) -> list[tuple[Mode, Proposal]]:
    loop, found = ControllerSettings(policy=policy, overload="head_age_s > 1").control_loop(CLASSES), []
    for number, observation in enumerate(observations(seen)):
        mode = modes[number % len(modes)]
        outcome = loop.tick(observation, mode)
        loop.carried_out(outcome.proposals)
        found += [(mode, one) for one in outcome.proposals]
    return found


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=10, deadline=None)
@given(seen=looks)
def test_who_is_never_delayed_is_not_and_who_sends_on_change_has_no_interval(policy: str, seen: list[Look]) -> None:
    for _, proposal in proposals(policy, seen, [Mode()]):
        if isinstance(proposal.action, Advise):
            advice = proposal.action.advice
            assert (advice.interval_of("alarm"), advice.dead_band_of("alarm")) == (0.0, 1.0)
            assert advice.interval_of("door") == 0.0


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=15, deadline=None)
@given(seen=looks)
def test_nobody_is_held_while_no_node_is_at_its_limit(policy: str, seen: list[Look]) -> None:
    """However old data is, and whatever was learnt of the nodes before: on a busy machine that proves nothing."""
    loop = ControllerSettings(policy=policy).control_loop(CLASSES)
    for observation in observations(seen):
        idle = tuple(msgspec.structs.replace(node, limit_rows=0.0, limit_s=0.0) for node in observation.nodes)
        outcome = loop.tick(msgspec.structs.replace(observation, nodes=idle), Mode())
        loop.carried_out(outcome.proposals)
        for proposal in outcome.proposals:
            if isinstance(proposal.action, Advise):
                advice = proposal.action.advice
                assert (advice.interval_s, set(advice.classes.values()) - {0.0}, advice.dead_bands) == (0.0, set(), {})


modes = st.builds(
    Mode, send_rate=st.sampled_from(MODES), nodes=st.sampled_from(MODES), slices=st.sampled_from(MODES),
    routes=st.sampled_from(MODES), frozen=st.booleans()
)  # fmt: skip


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=10, deadline=None)
@given(seen=looks, said=st.lists(modes, min_size=1, max_size=5))
def test_frozen_is_no_action_shadow_no_effect_and_every_reason_has_what_it_saw(
    policy: str, seen: list[Look], said: list[Mode]
) -> None:
    for mode, proposal in proposals(policy, seen, said):
        assert not mode.frozen
        assert proposal.acts or proposal.recorded
        assert proposal.reason.measurements
        assert proposal.reason.rule
        assert proposal.reason.rejected
        family = family_of(proposal.action)
        assert proposal.acts == (mode.of(family) != "shadow")
        assert mode.of(family) != "off" or isinstance(proposal.action, Advise), "nothing is left to be taken back"
        if isinstance(proposal.action, Advise):
            assert mode.send_rate != "off" or proposal.action.advice.interval_s == 0
