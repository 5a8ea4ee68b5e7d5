"""Policies by their name, and those that users write themselves."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidegate.control.send_rate.gotin import Gotin
from tidegate.model.errors import UserError
from tidegate.sim import policies
from tidegate.sim.run import simulate
from tidegate.sim.scenario import Load, Scenario, Service, Strategy

SCENARIO = Scenario(
    name="flood", seconds=20, classes=(Load(name="telemetry", pattern="0:20"),), service=Service(rate_per_s=10)
)
OWN = """
import msgspec
from tidegate.control.policy import Verdict

class State(msgspec.Struct, frozen=True):
    steps: int = 0

class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    default_rate_per_s: float = 1.0
    share: float = 0.5

class Half:
    settings_type = Settings
    state_type = State

    def __init__(self, settings):
        self.settings = settings

    def initial(self):
        return State()

    def step(self, state, seen):
        rate = self.settings.default_rate_per_s * self.settings.share
        verdict = Verdict(phase="half", rate_per_device=rate, capacity_per_s=None, rule="half", rejected="all")
        return State(state.steps + 1), verdict

class Broken(Half):
    settings_type = None

    def __init__(self):
        pass

    def step(self, state, seen):
        return 1 / 0

class Wrong(Broken):
    def step(self, state, seen):
        return state, "faster"

class Nothing(Broken):
    def step(self, state, seen):
        return state, Verdict(phase="", rate_per_device=0.0, capacity_per_s=None, rule="", rejected="")

class NoPolicy:
    pass
"""


@pytest.fixture(autouse=True)
def own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (tmp_path / "own_policies.py").write_text(OWN, encoding="utf-8")
    (tmp_path / "own_mistake.py").write_text("import no_such_module\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in ("own_policies", "own_mistake", "own_documented"):
        sys.modules.pop(name, None)


def test_a_registered_policy_is_told_about_the_devices() -> None:
    policy = policies.build(SCENARIO, Strategy(policy="gotin", options={"k_protect": 0.5}))
    assert isinstance(policy, Gotin)
    assert (policy._settings.default_rate_per_s, policy._settings.k_protect) == (2.0, 0.5)


def test_the_told_interval_is_that_of_the_largest_class_or_the_scenarios_own() -> None:
    loads = (Load(name="a", pattern="0:1", default_interval_s=9.0), Load(name="b", pattern="0:2,5:1"))
    large = Scenario(name="two", seconds=1, classes=loads, service=Service(rate_per_s=1))
    chosen = Scenario(name="two", seconds=1, classes=loads, service=Service(rate_per_s=1), default_interval_s=3.0)
    assert (large.told_interval_s, chosen.told_interval_s) == (0.5, 3.0)


def test_an_own_policy_runs_with_its_settings() -> None:
    half = simulate(SCENARIO, Strategy(policy="own_policies:Half"), 1)
    third = simulate(SCENARIO, Strategy(policy="own_policies:Half", options={"share": 0.25}), 1)
    assert (half.interval_max_s, third.interval_max_s) == (1.0, 2.0)


@pytest.mark.parametrize(
    ("policy", "options", "sentence"),
    [
        ("gotn", {}, "There is no policy 'gotn': choose one of"),
        ("gotin", {"k": 1}, "Policy gotin has no option 'k'"),
        ("own_policies:Half", {"shar": 1}, "has no option 'shar'"),
        ("own_policies:Half", {"share": "x"}, "Expected `float`"),
        ("own_policies:Broken", {"share": 1}, "Policy own_policies:Broken takes no options"),
        ("own_policies:Missing", {}, "the module own_policies has no class 'Missing'"),
        ("own_policies:NoPolicy", {}, "is no send-rate policy: it lacks state_type, initial, step."),
        ("own_mistake:Half", {}, "cannot be imported (ModuleNotFoundError: No module named 'no_such_module')"),
        ("no_such_file:Half", {}, "cannot be imported (ModuleNotFoundError: No module named 'no_such_file')"),
        (":Half", {}, "the module '' cannot be imported"),
    ],
)
def test_what_cannot_be_built_is_one_sentence(policy: str, options: dict[str, object], sentence: str) -> None:
    with pytest.raises(UserError) as caught:
        policies.build(SCENARIO, Strategy(policy=policy, options=options))
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("policy", "sentence"),
    [
        ("own_policies:Broken", r"failed with ZeroDivisionError \(division by zero\) in line 34 of .*own_policies\.py"),
        ("own_policies:Wrong", "step must return a State and a Verdict"),
        ("own_policies:Nothing", r"a rate must be more than 0, or None for the default; it said \[0\.0\]"),
        ("tidegate.control.send_rate.oracle:Oracle", "cannot be built"),
    ],
)
def test_a_fault_of_an_own_policy_is_one_sentence(policy: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        simulate(SCENARIO, Strategy(policy=policy), 1)


def test_the_documented_policy_runs(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / "scenarios.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(# my_policy\.py\n.*?)```", text, flags=re.DOTALL)
    (tmp_path / "own_documented.py").write_text(example, encoding="utf-8")
    strategy = Strategy(policy="own_documented:MyPolicy", options={"target": 5})
    held, free = simulate(SCENARIO, strategy, 1), simulate(SCENARIO, Strategy(policy="none"), 1)
    assert held.sent < 0.75 * free.sent
    assert held.readings > 1.5 * free.readings
