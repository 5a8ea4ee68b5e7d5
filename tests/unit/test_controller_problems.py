"""What is wrong with a controller, as it is shown and said."""

from collections.abc import Callable

import pytest

from tidegate.controller.problems import Problems
from tidegate.controller.ruling import Ruling
from tidegate.controller.settings import ControllerSettings
from tidegate.loop.rules import AppliedRules, Rule, RuleSet, StepRule


class Said:
    def __init__(self) -> None:
        self.now_s = 100.0
        self.lines: list[str] = []
        self.problems = Problems(self.lines.append, lambda: self.now_s)


def test_a_problem_is_said_when_it_begins_and_when_it_is_over() -> None:
    said = Said()
    for words in ("The bus is away.", "The bus is away, still."):
        said.problems.begin("round", words)
    assert (said.problems.alarms(), said.lines) == (("The bus is away, still.",), ["The bus is away."])
    said.problems.end("round")
    said.problems.end("round")
    assert (said.problems.alarms(), said.lines[1:]) == ((), ["That is over: The bus is away, still."])


def test_one_kind_does_not_hide_another() -> None:
    said = Said()
    said.problems.begin("lease", "Who leads is not known.")
    said.problems.begin("round", "The mode is damaged.")
    said.problems.begin("replay", "Decision 7 cannot be replayed.", lasts_s=60.0)
    said.problems.end("round")
    assert said.problems.alarms() == ("Who leads is not known.", "Decision 7 cannot be replayed.")
    said.now_s += 61.0
    assert said.problems.alarms() == ("Who leads is not known.",)


def test_another_cause_is_said_anew() -> None:
    said = Said()
    said.problems.begin("round", "The bus is away.", cause="away")
    said.problems.begin("round", "The mode is damaged.", cause="damaged")
    assert said.lines == ["The bus is away.", "The mode is damaged."]


@pytest.fixture
def said() -> Said:
    return Said()


@pytest.fixture
def ruling(said: Said) -> Ruling:
    settings = ControllerSettings(nodes_max=2)
    return Ruling(settings.control_loop(), settings, (), said.lines.append, said.problems)


def applied(nodes: int) -> AppliedRules:
    rule = Rule(name="grow", on="overload", plan=(StepRule(nodes=nodes),))
    return AppliedRules(text="", rules=RuleSet(rules=(rule,)), name="mine.yaml", applied_at_s=float(nodes))


def test_rules_that_are_refused_are_said_once_per_change(said: Said, ruling: Ruling) -> None:
    for nodes in (5, 5, 6, 6):
        ruling.follow(applied(nodes))
    assert [line.partition("wants ")[2][:7] for line in said.lines] == ["5 nodes", "6 nodes"]
    assert len(said.problems.alarms()) == 1
    ruling.follow(applied(2))
    assert said.problems.alarms() == ()
    assert said.lines[-1] == "Rules of mine.yaml: 1 are followed."


@pytest.mark.parametrize("restored", [lambda: applied(2), lambda: None])
def test_rules_that_can_be_read_again_end_the_alarm(
    said: Said, ruling: Ruling, restored: Callable[[], AppliedRules | None]
) -> None:
    ruling.follow(restored())
    for _ in range(3):
        ruling.unreadable("The document 'rules' is damaged.")
    assert said.problems.alarms() == ("The document 'rules' is damaged.",)
    assert said.lines.count("The document 'rules' is damaged.") == 1
    ruling.follow(restored())
    assert said.problems.alarms() == ()
    assert ruling._loop.knows_rules
