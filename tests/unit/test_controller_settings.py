"""What may be set about the controller, and the sentence for what may not."""

import pytest

from tidegate.controller.settings import ControllerSettings
from tidegate.loop.state import LoopState
from tidegate.model.actions import ScaleNodes
from tidegate.model.decisions import Mode
from tidegate.model.errors import UserError
from tidegate.model.observations import NodeState, Observation


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"options": {"k_protect": 1.0}}, "k_protect"),
        ({"options": {"k_recovery": 1.1}}, "no option 'k_recovery'"),
        ({"options": ["k_protect"]}, "setting options is out of range: Expected `object`, got `array`"),
        ({"options": "k_protect = 0.5"}, "setting options is out of range: Expected `object`, got `str`"),
        ({"policy": "adaptive", "options": {"horizon": 1}}, "Policy adaptive has no option 'horizon'"),
        (
            {"policy": "adaptive", "options": {"provisioning": 3}},
            "Policy adaptive: .*got `int` - at `\\$.provisioning`",
        ),
        ({"policy": "adaptive", "options": {"provisioning": {"nodes": 3}}}, "`nodes` - at `\\$.provisioning`"),
        ({"policy": "oracle"}, "policy"),
        ({"nodes_max": 0}, "nodes_max"),
        ({"nodes_max": 65}, "nodes_max"),
        ({"period_s": 0.0}, "period_s"),
        ({"lease_s": 0.5}, "lease_s"),
        ({"policy": "magic"}, "policy"),
        ({"name": "a.b"}, "name"),
        ({"overload": "age > 1"}, "The controller's setting overload names age"),
        ({"period_s": 2.0, "window_s": 3.0}, "window_s is 3, less than two periods"),
        ({"advice_lifetime_s": 5.0, "lease_s": 3.0}, "advice would run out"),
    ],
)
def test_refusals(given: dict, says: str) -> None:
    with pytest.raises(UserError, match=says):
        ControllerSettings(**given)


@pytest.mark.parametrize("policy", ["adaptive", "coupled", "credits", "gotin", "gradient2", "none", "spark-pid"])
def test_settings_build_a_loop(policy: str) -> None:
    assert ControllerSettings(policy=policy).control_loop().state == LoopState()


def asked_for(settings: ControllerSettings) -> set[int]:
    """The numbers of nodes that are asked for in a flood of which one node takes a twentieth."""
    loop, found = settings.control_loop(), set()
    for second in range(1, 41):
        node = NodeState(
            name="node-1", alive=True, slices=(0,), rows=50 * second, limit_rows=50.0 * second, limit_s=float(second)
        )
        observation = Observation(
            at_s=1_000.0 + second,
            arrived=1_000 * second,
            committed=50 * second,
            head_age_s=0.95 * second,
            devices=500,
            nodes=(node,),
        )
        proposals = loop.tick(observation, Mode()).proposals
        loop.carried_out(proposals)
        actions = [one.action for one in proposals]
        found |= {action.nodes_wanted for action in actions if isinstance(action, ScaleNodes)}
    return found


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        pytest.param({}, set(), id="one node is what there is: nobody is asked"),
        pytest.param({"nodes_max": 3}, {3}, id="as many as may be asked for"),
        pytest.param({"nodes_max": 3, "options": {"provisioning": {"price_node_s": 1e6}}}, set(), id="not worth it"),
        pytest.param({"nodes_max": 3, "options": {"provisioning": {"nodes_max": 2}}}, {2}, id="an option may be less"),
        pytest.param({"nodes_max": 3, "options": {"provisioning": {"nodes_max": 99}}}, {3}, id="but not more"),
    ],
)
def test_so_many_nodes_may_be_asked_for(given: dict, asked: set[int]) -> None:
    assert asked_for(ControllerSettings(policy="adaptive", **given)) == asked


@pytest.mark.parametrize("nodes_max", [1, 2, 6])
def test_a_coupled_autoscaler_asks_for_no_more_nodes_than_may_be_asked_for(nodes_max: int) -> None:
    for wanted in ({}, {"autoscaler_options": {"nodes_max": 9}}):
        options = {"mode": "independent", **wanted}
        settings = ControllerSettings(policy="coupled", nodes_max=nodes_max, options=options)
        assert max(asked_for(settings), default=1) == nodes_max
