"""Scenario files: what they give, and sentences about what is wrong in them."""

from pathlib import Path

import pytest

from tidegate.model.errors import UserError
from tidegate.sim import policies
from tidegate.sim.files import ScenarioFile, load
from tidegate.sim.scenario import Enforcement, Load, Monitoring, Replay, Scenario, Service, Strategy

EXAMPLES = Path(__file__).parents[2] / "examples" / "scenarios"
GOOD = """
name: small
seconds: 60
classes:
  - name: telemetry
    pattern: "0:10"
service:
  rate_per_s: 5
"""


def file(directory: Path, text: str) -> Path:
    path = directory / "scenario.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_what_a_file_leaves_out_has_a_default(tmp_path: Path) -> None:
    found = load(file(tmp_path, GOOD))
    expected = Scenario(
        name="small",
        seconds=60.0,
        classes=(Load(name="telemetry", pattern="0:10"),),
        service=Service(rate_per_s=5.0),
    )
    assert all(getattr(found, name) == getattr(expected, name) for name in Scenario.__struct_fields__)
    assert found.strategies == ()


def test_points_are_a_pattern_too(tmp_path: Path) -> None:
    found = load(file(tmp_path, GOOD.replace('"0:10"', "[[0, 10], [5, 20]]")))
    assert found.classes[0].devices().points == ((0.0, 10), (5.0, 20))


def test_strategies_and_nested_keys(tmp_path: Path) -> None:
    text = GOOD + "strategies:\n  - policy: gotin\n    name: published\n    options: {k_protect: 0.9}\n"
    found = load(file(tmp_path, text))
    assert found.strategies == (Strategy(policy="gotin", name="published", options={"k_protect": 0.9}),)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_example_loads_and_its_policies_can_be_built(path: Path) -> None:
    found = load(path)
    assert found.name == path.stem
    for strategy in found.strategies:
        policies.build(found, strategy)


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ("seconds: 60", "second: 60", "unknown key second: did you mean seconds?"),
        ("seconds: 60\n", "", "seconds is missing: expected a number above 0 and of at most 10,000,000"),
        ("seconds: 60", "seconds: soon", "seconds is 'soon': expected a number"),
        ("seconds: 60", "seconds: 0", "seconds is 0: expected a number above 0"),
        ("seconds: 60", "seconds: .nan", ".nan cannot be used as a number"),
        ("rate_per_s: 5", "rate: 5", "unknown key service.rate: did you mean rate_per_s?"),
        ("rate_per_s: 5", "nodes_at_start: 1", "service.rate_per_s is missing: expected a number above 0"),
        ("service:\n  rate_per_s: 5", "service: 5", "service is 5: expected keys with values."),
        ("rate_per_s: 5", "rate_per_s: 5\n  nodes_at_start: 3", "starts with 3 nodes, and nodes_min is 1"),
        ("rate_per_s: 5", "rate_per_s: 5\n  capacity: [[9, 1], [3, 1]]", "capacity goes back in time"),
        ("rate_per_s: 5", "rate_per_s: 5\n  capacity: [9]", "service.capacity is [9]: expected a list, each item ["),
        ("rate_per_s: 5", "rate_per_s: 5\n  instances: 3", "service.instances is now called nodes_at_start: "),
        ("rate_per_s: 5", "rate_per_s: 5\n  instances_max: 3", "service.instances_max: did you mean nodes_max?"),
        ("service:", "strategies: [{policy: none, instances: 2}]\nservice:", "strategies[0].instances is now called"),
        ("pattern:", "patern:", "unknown key classes[0].patern: did you mean pattern?"),
        ("name: telemetry", "name: Telemetry", "classes[0].name is 'Telemetry': expected text that matches"),
        ("name: telemetry\n    ", "", "classes[0].name is missing: expected text that matches"),
        ('"0:10"', '""', "Pattern '' has the point '': write seconds:devices"),
        ('"0:10"', "[]", "Class telemetry has an empty pattern: write points like"),
        ('"0:10"', "[[5, 1], [2, 1]]", "The pattern of class telemetry goes back in time"),
        ('"0:10"', "[[0, -1]]", "classes[0].pattern is [[0, -1]]: expected text or a list, each item"),
        ('"0:10"', '"5:1,2:1"', "goes back in time"),
        ("classes:\n  - name: telemetry\n    pattern: \"0:10\"", "classes: []", "Scenario small has no classes"),
        ("classes:\n  - name: telemetry\n    pattern: \"0:10\"", "classes: 3", "classes is 3: expected a list"),
        ("classes:\n  - name: telemetry\n    pattern: \"0:10\"", "classes: [3]", "classes[0] is 3: expected keys with"),
        ("  - name", "  - name: telemetry\n  - name", "has two classes named telemetry"),
        ("service:", "window_s: 0.5\nservice:", "has a window of 0.5 s, shorter than the monitoring's period (1 s)"),
        ("service:", "monitoring: {noise: -1}\nservice:", "monitoring.noise is -1: expected a number from 0 to 10."),
        ("service:", "strategies: [{polcy: none}]\nservice:", "unknown key strategies[0].polcy: did you mean policy?"),
        ("service:", "strategies: [{policy: none}, {policy: none}]\nservice:", "Two strategies are called none"),
        ("service:", "3: 4\nservice:", "unknown key 3: choose one of"),
        ("name: small", "name: [", "line 4, column 8: expected"),
        (GOOD, "- 3\n", "is [3]: a scenario has keys with values"),
        (GOOD, "", "is None: a scenario has keys with values"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_sentence_with_its_place(tmp_path: Path, before: str, after: str, sentence: str) -> None:
    assert before in GOOD
    path = file(tmp_path, GOOD.replace(before, after, 1))
    with pytest.raises(UserError) as caught:
        load(path)
    message = str(caught.value)
    assert message.startswith(str(path))
    assert sentence in message
    assert "\n" not in message


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="does not exist"):
        load(tmp_path / "none.yaml")
    with pytest.raises(UserError, match="cannot be read"):
        load(tmp_path)
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match="is not YAML"):
        load(tmp_path / "binary.yaml")


def test_a_recording_lies_beside_its_scenario(tmp_path: Path) -> None:
    found = load(file(tmp_path, GOOD + "replay: {file: recorded.csv}\n"))
    assert found.replay is not None
    assert found.replay.file == str(tmp_path / "recorded.csv")


def test_every_key_is_documented() -> None:
    text = (EXAMPLES.parents[1] / "docs" / "scenarios.md").read_text(encoding="utf-8")
    for struct in (ScenarioFile, Load, Service, Monitoring, Strategy, Replay, Enforcement):
        for name in struct.__struct_fields__:
            assert f"| `{name}` |" in text, f"{struct.__name__}.{name}"
