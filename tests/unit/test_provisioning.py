"""How many nodes are wanted: prices, trends, ceilings, and how late they go."""

import pytest

from tidegate.control.scaling.provisioning import Provisioned, ProvisioningSettings, provision

SETTINGS = ProvisioningSettings(
    nodes_max=8, price_node_s=1.0, price_withheld=1.0, utilisation=1.0, start_s=0.0, down_after_s=5.0
)


def after(
    state: Provisioned, *, demand: float, rate: float = 10.0, node_count: int = 1, at_s: float = 0.0, **chosen
) -> Provisioned:
    given = {"starting": 0, "busy_share": 1.0, "settings": SETTINGS, **chosen}
    return provision(
        state,
        given.pop("settings"),
        at_s=at_s,
        demand_per_s=demand,
        node_rate_per_s=rate,
        node_count=node_count,
        **given,
    )


@pytest.mark.parametrize(
    ("demand", "price_node_s", "wanted"),
    [
        pytest.param(5, 1.0, 1, id="one is enough"),
        pytest.param(35, 1.0, 4, id="as many as the demand needs"),
        pytest.param(30.5, 1.0, 3, id="half a message a second is not worth a node"),
        pytest.param(35, 6.0, 3, id="a dear node is started for ten messages, not for five"),
        pytest.param(35, 11.0, 1, id="too dear to be worth it at all"),
        pytest.param(1000, 1.0, 8, id="never more than the maximum"),
    ],
)
def test_the_cheapest_number(demand: float, price_node_s: float, wanted: int) -> None:
    settings = ProvisioningSettings(nodes_max=8, price_node_s=price_node_s, utilisation=1.0, start_s=0.0)
    assert after(Provisioned(), demand=demand, settings=settings).wanted == wanted


def test_without_evidence_the_number_stays() -> None:
    assert after(Provisioned(), demand=100, rate=None).wanted is None


def test_down_only_when_fewer_sufficed_for_a_while() -> None:
    state = after(Provisioned(), demand=35)
    for at_s, demand, wanted in [(1, 10, 4), (3, 10, 4), (4, 35, 4), (5, 10, 4), (9.9, 10, 4), (10.1, 10, 1)]:
        state = after(state, demand=demand, node_count=4, at_s=at_s)
        assert state.wanted == wanted, at_s


def test_a_growing_demand_is_met_when_the_node_will_work() -> None:
    """Two messages a second more each second, ten seconds to start: room for twenty more is asked for now."""
    settings = ProvisioningSettings(nodes_max=8, price_node_s=0.1, utilisation=1.0, start_s=10.0)
    state = Provisioned()
    for at_s in range(6):
        state = after(state, demand=10 + 2 * at_s, at_s=at_s, settings=settings)
    assert state.wanted == 4


def test_nodes_that_do_not_help_are_given_back_and_no_more_are_asked_for() -> None:
    """Two nodes take 20, four take 21 together: something they share is the limit."""
    state = after(Provisioned(), demand=60, rate=10.0, node_count=2, at_s=0)
    assert state.wanted == 6
    state = after(state, demand=60, rate=21 / 4, node_count=4, at_s=20)
    assert state.ceiling_per_s == pytest.approx(21)
    for at_s in (21, 27):
        state = after(state, demand=60, rate=21 / 4, node_count=4, at_s=at_s)
    assert state.wanted == 2


def test_a_ceiling_is_forgotten() -> None:
    state = after(Provisioned(), demand=60, rate=10.0, node_count=2, at_s=0)
    state = after(state, demand=60, rate=21 / 4, node_count=4, at_s=20)
    state = after(state, demand=60, rate=10.0, node_count=2, at_s=20 + SETTINGS.ceiling_s + 1)
    assert state.ceiling_per_s is None
    assert state.wanted == 6


def test_nodes_that_got_slower_meanwhile_are_no_ceiling() -> None:
    state = after(Provisioned(), demand=60, rate=10.0, node_count=2, at_s=0)
    state = after(state, demand=60, rate=5.0, node_count=4, at_s=200)
    assert state.ceiling_per_s is None


def test_idle_nodes_prove_no_ceiling() -> None:
    state = after(Provisioned(), demand=60, rate=10.0, node_count=2, at_s=0)
    assert after(state, demand=60, rate=5.0, node_count=4, at_s=20, busy_share=0.5).ceiling_per_s is None
