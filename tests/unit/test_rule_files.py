"""Rule files: what is in them is followed; a mistake is refused with its line, its column and the remedy."""

from pathlib import Path

import pytest

from tidegate.controller.settings import ControllerSettings
from tidegate.loop.rules import RULES_MAX
from tidegate.model.classes import DeviceClass
from tidegate.model.errors import UserError
from tidegate.model.intents import Algorithm, Count, Pace
from tidegate.settings.rules import read

SETTINGS = ControllerSettings()
CLASSES = (DeviceClass(name="alarm", never_delay=True), DeviceClass(name="telemetry"))
GOOD = """\
events:
  hot:
    of: brokers
    when: connections > 10
    need: 2
rules:
  - name: cool
    on: hot
    plan:
      - send_every_s: {"*": 5}
      - nodes: 3
        until: nodes_working >= 3
      - policy: adaptive
"""


def test_a_file_says_events_and_plans() -> None:
    found = read(GOOD, "rules.yaml", SETTINGS)
    assert found.events["hot"].need == 2
    plan = found.rules[0].planned(1, {"head_age_s": 3.0})
    assert [step.wanted for step in plan.steps] == [
        {"send-rate/*": Pace(interval_s=5.0)},
        {"nodes": Count(nodes=3)},
        {"policy/send-rate": Algorithm(name="adaptive")},
    ]
    assert plan.reason.measurements == {"head_age_s": 3.0}


def test_the_example_can_be_applied() -> None:
    text = Path("examples/rules/evening.yaml").read_text()
    assert len(read(text, "evening.yaml", SETTINGS).rules) == 2


@pytest.mark.parametrize("text", ["", "# nothing\n", "events: {}\n"])
def test_an_empty_file_says_none(text: str) -> None:
    assert read(text, "rules.yaml", SETTINGS).rules == ()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("need: 2", "need: two", "line 5, column 5: events.hot.need is 'two'"),
        ("need: 2", "neet: 2", "line 5, column 5: unknown key events.hot.neet: did you mean need?"),
        ("connections > 10", "conections > 10", "line 4, column 5: when names conections, which is no property: did"),
        ("connections > 10", "connections >", "line 4, column 5: when is 'connections >', which is no expression"),
        ("on: hot", "on: hat", "line 8, column 5: rules[0].on names 'hat', which is no event: choose one of hot, over"),
        ("    on: hot\n", "", "line 7, column 5: rules[0].on is missing: expected text"),
        ("- nodes: 3", "- nodes: 300", "line 11, column 9: rules[0].plan[1].nodes is 300: expected an integer from 1"),
        (
            "- nodes: 3",
            "- nodes: 3\n        policy: gotin",
            "line 11, column 9: a step says one of send_every_s, nodes",
        ),
        ("adaptive", "adoptive", "line 13, column 9: rules[0].plan[2]: There is no policy 'adoptive': choose one of"),
        (
            "policy: adaptive",
            "options: {kp: 1}",
            "line 13, column 9: rules[0].plan[2]: Policy gotin has no option 'kp'",
        ),
        ("nodes_working >= 3", "nodes >= 3", "line 12, column 9: until names nodes, which is no property"),
        ("  hot:", "  hot: {when: waiting > 1}\n  hot:", "line 3, column 3: hot stands there for the second time"),
        ("  hot:", "  overload:", "line 2, column 3: events.overload: this event is built in: choose another name."),
        ("  hot:", "  Hot:", "line 2, column 3: events: the name is 'Hot': expected text that matches"),
        ("on: hot", "on: [hot", "line 9, column 9: "),
        ("of: brokers", "of: &a brokers\n    until: *a", "line 4, column 5: until: 'brokers' is no comparison"),
        ("rules:", "ranges: {head_age: [1]}\nrules:", "line 6, column 10: ranges.head_age is no property: choose"),
        ("rules:", "ranges: {waiting: [3, 1]}\nrules:", "line 6, column 10: ranges.waiting has the bounds [3.0, 1.0]"),
        ("    plan:\n", "    plan: []\n    steps:\n", "line 10, column 5: unknown key rules[0].steps: did you mean"),
        ("rules:", "rules: 3\nrulez:", "line 6, column 1: rules is 3: expected a list"),
        ("rules:", "ranges: {head_age_s: [2, .inf]}\nrules:", "line 6, column 26: .inf cannot be used as a number"),
        ("rules:", "ranges: {head_age_s: [.nan]}\nrules:", "line 6, column 23: .nan cannot be used as a number"),
        (
            "rules:",
            "ranges:\n  head_age_s: [1]\n  brokers.connection: [1]\nrules:",
            "line 8, column 3: ranges.brokers.connection is no property",
        ),
        ("policy: adaptive", "policy: oracle", "line 13, column 9: rules[0].plan[2]: The policy oracle knows the"),
        (
            "policy: adaptive",
            "policy: coupled\n        options: {policy: oracle}",
            "line 13, column 9: rules[0].plan[2]: The policy oracle knows the truth",
        ),
        ("connections > 10", f"connections > {'9' * 400}", "line 4, column 5: when: '999"),
        (
            '{"*": 5}',
            '{"*": 0}',
            "line 10, column 9: rules[0].plan[0].send_every_s is {'*': 0}: expected keys with",
        ),
        ('{"*": 5}', "{alarm: 5}", "line 10, column 24: rules[0].plan[0].send_every_s.alarm: devices of class alarm"),
        ('{"*": 5}', "{sirens: 5}", "line 10, column 24: rules[0].plan[0].send_every_s.sirens: there is no class"),
        ("nodes: 3", "slices: {3: a, 0x3: b}", "line 11, column 24: 0x3 stands there for the second time: leave one"),
        (
            "nodes: 3",
            "slices: {1: 'a.*.>'}",
            "line 11, column 9: rules[0].plan[1].slices is {1: 'a.*.>'}: expected keys",
        ),
        ("nodes: 3", "slices: {1: ''}", "line 11, column 9: rules[0].plan[1].slices is {1: ''}: expected keys"),
        ("    need: 2", "    <<: {need: 2}", "line 5, column 5: a key is a word or a whole number"),
        ("    need: 2", "    true: 2", "line 5, column 5: a key is a word or a whole number"),
        ("    need: 2", "    ~: 2", "line 5, column 5: a key is a word or a whole number"),
        ("name: cool", 'name: "cool\\n"', "line 7, column 5: rules[0].name is 'cool\\n': expected text that matches"),
        ("name: cool", 'name: "\\ud800"', "line 7, column 11: text with half a character"),
        ("of: brokers\n    when: connections", "when: waiting", "line 4, column 5: need is 2, and there is one chain"),
        (
            "of: brokers\n    when: connections > 10\n    need: 2",
            "of: chain\n    when: waiting > 10\n    need: mean",
            "line 5, column 5: need is 'mean', and there is one chain: leave it out, or say of whom",
        ),
        ("need: 2", f"need: {'9' * 5000}", f"line 5, column 11: '{'9' * 40}' cannot be read: change it."),
        ("need: 2", 'need: !!int ""', "line 5, column 11: '' cannot be read: change it."),
        ("need: 2", "need: !!bool perhaps", "line 5, column 11: 'perhaps' cannot be read: change it."),
        ("need: 2", "need: 2024-13-45", "line 5, column 11: '2024-13-45' cannot be read: change it."),
        ("need: 2", f"need: {'[' * 100}", "line 5, column 59: nested too deeply: correct that place."),
        (
            "policy: adaptive",
            "policy: adaptive\n        options: {provisioning: {nodes_max: 99999}}",
            "line 14, column 9: rules[0].plan[2].options wants 99999 nodes: at most 64 may be asked for.",
        ),
        ("of: brokers", "of: brok\x00ers", "line 3, column 13: a character that may not stand in YAML"),
    ],
)
def test_a_mistake_is_refused_where_it_stands(old: str, new: str, said: str) -> None:
    assert old in GOOD
    with pytest.raises(UserError) as caught:
        read(GOOD.replace(old, new, 1), "rules.yaml", SETTINGS, CLASSES)
    assert str(caught.value).startswith(f"rules.yaml, {said}")


def test_what_is_meant_twice_is_refused_before_it_grows() -> None:
    lines = ["a0: &a0 {x: 1}"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 40)]
    with pytest.raises(UserError, match=r"aliases are not taken"):
        read("\n".join(lines), "rules.yaml", SETTINGS)


@pytest.mark.parametrize("text", ["- 1\n", "3\n", "[" * 5000, "\x00", "a: b: c", "? [a]\n: 1\n", "!!python/none x: 1"])
def test_what_is_no_rule_file_is_one_sentence(text: str) -> None:
    with pytest.raises(UserError, match=r"^rules\.yaml") as caught:
        read(text, "rules.yaml", SETTINGS)
    assert "\n" not in str(caught.value)


def test_there_may_be_so_many_rules_and_no_more() -> None:
    rules = "".join(f"  - {{name: r{n}, on: overload, plan: [{{nodes: 1}}]}}\n" for n in range(RULES_MAX + 1))
    with pytest.raises(UserError, match=f"line 1, column 1: rules are {RULES_MAX + 1}: at most {RULES_MAX}"):
        read(f"rules:\n{rules}", "rules.yaml", SETTINGS)


def test_more_nodes_than_may_be_asked_for_are_refused_by_who_knows_how_many() -> None:
    rules = read(GOOD, "rules.yaml", SETTINGS)
    with pytest.raises(UserError, match="Rule cool wants 3 nodes, and nodes_max is 1: start with 'tidegate"):
        SETTINGS.check_nodes(rules)
    ControllerSettings(nodes_max=3).check_nodes(rules)


@pytest.mark.parametrize(
    "step",
    [
        "{policy: adaptive, options: {provisioning: {nodes_max: 5}}}",
        "{policy: adaptive, options: {provisioning: {nodes_min: 5}}}",
        "{policy: coupled, options: {autoscaler_options: {nodes_max: 5}}}",
    ],
)
def test_an_algorithm_that_may_ask_for_more_nodes_is_refused_by_who_knows_how_many(step: str) -> None:
    rules = read(f"rules: [{{name: grow, on: overload, plan: [{step}]}}]", "rules.yaml", SETTINGS)
    with pytest.raises(UserError, match="Rule grow wants 5 nodes, and nodes_max is 4: start with 'tidegate"):
        ControllerSettings(nodes_max=4).check_nodes(rules)
    ControllerSettings(nodes_max=5).check_nodes(rules)


def test_the_chain_may_be_asked_as_one() -> None:
    assert read("events: {old: {when: head_age_s > 1, need: 1}}", "rules.yaml", SETTINGS).events["old"].need == 1
