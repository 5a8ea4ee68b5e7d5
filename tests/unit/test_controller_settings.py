"""What may be set about the controller, and the sentence for what may not."""

import pytest

from tidegate.controller.settings import ControllerSettings
from tidegate.model.errors import UserError


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"options": {"k_protect": 1.0}}, "k_protect"),
        ({"options": {"k_recovery": 1.1}}, "no option 'k_recovery'"),
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


@pytest.mark.parametrize("policy", ["gotin", "none"])
def test_settings_build_a_loop(policy: str) -> None:
    assert ControllerSettings(policy=policy).control_loop().state.phase == "idle"
