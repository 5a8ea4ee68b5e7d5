"""The dashboard's page of rules, as rows and sentences."""

from tidegate.model.decisions import Mode
from tidegate.model.effects import Effect
from tidegate.model.notices import ActionPlan, EffectReport, EventNotification, RangeChange
from tidegate.model.view import ChainStates, RulesState, RuleState, View
from tidegate.web.tabs.rules.tables import events, notices, rules, sentence

STATE = RulesState(
    name="evening.yaml",
    rules=(
        RuleState(name="cool", on="hot", active=True, plan="doing", step=2, steps=3),
        RuleState(name="grow", on="hot", active=True, plan="stuck", step=1, steps=1, trouble="stuck at step 1"),
        RuleState(name="calm", on="quiet", active=False, steps=2),
    ),
    events={"hot": True, "quiet": False},
    notices=(
        EventNotification(at_s=1.0, event="hot", active=True),
        ActionPlan(at_s=2.0, plan="7", rule="cool", event="hot", state="doing", step=2, steps=3),
        RangeChange(at_s=3.0, source="chain", property="head_age_s", value=12.5, was=0, now=1),
        EffectReport(
            at_s=4.0,
            plan="9",
            family="nodes",
            expects=Effect(source="chain", quantity="nodes_working", above=3, within_s=180),
            shown=False,
            value=1.0,
            cooling_s=120.0,
        ),
    ),
)


def view(state: RulesState) -> View:
    return View(
        name="n", controller="c", leader="c", mode=Mode(), samples=(), decisions=(), chain=ChainStates(), rules=state
    )


def test_every_rule_says_where_it_is() -> None:
    assert rules(view(STATE)).rows == (
        ("cool", "hot", "▲ under way", "2 of 3", "none"),
        ("grow", "hot", "■ stuck", "1 of 1", "stuck at step 1"),
        ("calm", "quiet", "waits for its event", "0 of 2", "none"),
    )
    assert events(view(STATE)).rows == (("hot", "▲ under way"), ("quiet", "● not under way"))
    assert sentence(STATE) == "3 rule(s) of evening.yaml are followed: cool, grow acts now."
    assert sentence(RulesState()).startswith("No rules are applied")


def test_what_happened_is_told_newest_first() -> None:
    assert [said for _, said in notices(view(STATE)).rows] == [
        "Decision 9 is taken back, and not made again for 120 s: it was to bring nodes_working of chain at least 3 "
        "within 180 s, and that is 1.0.",
        "chain head_age_s is 12.5: in range 1, was in 0.",
        "Rule cool: doing, step 2 of 3.",
        "Event hot begins.",
    ]
