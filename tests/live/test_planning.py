"""``tidegate plan`` and ``apply`` beside a real control bus: what is foretold is the leader's, and so is the answer."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import msgspec
import pytest
from support.bus import LEASE_S, forget_all
from support.controllers import OVERLOAD, QUICK, Site, controlling, started
from support.waiting import until, until_async

from tidegate.bus.documents import APPLIED, APPLY, LEADER, LOOP_STATE, MODE, Holder
from tidegate.cli import plan
from tidegate.controller.foresight import foresee, leader_built_from
from tidegate.controller.replaying import BuiltFrom
from tidegate.controller.settings import ControllerSettings
from tidegate.loop.planner import PlannerState
from tidegate.loop.state import LoopState
from tidegate.model.actions import ScaleNodes
from tidegate.model.decisions import Applied, Apply, Decision, Mode
from tidegate.model.errors import UserError
from tidegate.model.intents import Reason

pytestmark = pytest.mark.live

BUILT_FROM = BuiltFrom(controller=msgspec.convert(QUICK, ControllerSettings))


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """300 messages wait in it, from the beginning on."""
    with started(tmp_path_factory.mktemp("planning") / "state") as site:
        site.audit.create()
        site.publish(300)
        yield site


@pytest.fixture
def site(running: Site) -> Iterator[Site]:
    yield running
    forget_all(running.here)
    running.tell()


@pytest.fixture
def asked(site: Site) -> Iterator[Future[list[str]]]:
    """An operator who has given his word, and waits; this test is the leader."""
    site.bus.put(LEADER, Holder("leader", "1"), lease_s=LEASE_S)
    with ThreadPoolExecutor(1) as operator:
        waiting = operator.submit(plan._applied, site.here, Apply(once="mine"))
        until(lambda: site.bus.entry(APPLY) is not None)
        site.bus.delete(APPLY)
        yield waiting


def decide(site: Site, number: int, *, trouble: str = "") -> None:
    decision = Decision(
        at_s=1.0,
        controller="leader",
        plan=str(number),
        round=str(number),
        by="nodes",
        phase="",
        sentence=f"Number {number}.",
        acted=not trouble,
        trouble=trouble,
        action=ScaleNodes(nodes_wanted=1),
        reason=Reason(rule="so", rejected="nothing", because="so"),
    )
    site.audit.append(decision, once=f"{number}@{site.audit.last_sequence()}")


def answer(site: Site, *plans: str, word: str = "mine", measured: bool = True) -> None:
    site.bus.put(APPLIED, Applied(plans=plans, measured=measured), word, lease_s=LEASE_S)


def test_what_others_decide_is_no_answer(site: Site, asked: Future[list[str]]) -> None:
    decide(site, 1)
    answer(site, "1", word="another")
    with pytest.raises(TimeoutError):
        asked.result(1)
    answer(site, "3", "4")
    decide(site, 2)
    decide(site, 3)
    with pytest.raises(TimeoutError):
        asked.result(1)
    decide(site, 4, trouble="It went.")
    assert asked.result(5) == ["Done: Number 3.", "Not done: Number 4. It went."]


def test_a_word_of_which_nothing_came_is_answered_too(site: Site, asked: Future[list[str]]) -> None:
    decide(site, 1)
    answer(site)
    assert asked.result(5) == ["Nothing was left to do."]


def test_a_leader_that_could_not_measure_says_so(site: Site, asked: Future[list[str]]) -> None:
    answer(site, measured=False)
    with pytest.raises(UserError, match="could not measure at that moment"):
        asked.result(5)


def test_words_do_not_replace_each_other_and_do_not_outlive_who_gave_them(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan, "WORD_S", 0.5)
    site.bus.put(LEADER, Holder("leader", "1"), lease_s=LEASE_S)
    with pytest.raises(UserError, match="has not answered within"):
        plan._applied(site.here, Apply(once="unheard"))
    assert site.bus.entry(APPLY) is None
    site.bus.put(APPLY, Apply(once="first"), lease_s=LEASE_S)
    with pytest.raises(UserError, match="Another 'tidegate apply' waits"):
        plan._applied(site.here, Apply(once="second"))
    assert site.bus.get(APPLY) == Apply(once="first")


def test_a_leader_answers_every_word_it_obeys(site: Site) -> None:
    def answered(word: str) -> Applied | None:
        site.bus.put(APPLY, Apply(once=word), lease_s=10.0)
        until(lambda: site.bus.entry(APPLIED, word) is not None)
        return site.bus.get(APPLIED, word)

    async def scenario() -> None:
        site.bus.put(MODE, Mode(send_rate="shadow"))
        async with controlling(site.here):
            await until_async(lambda: any(not one.acted for one in site.audit.last(50)))
            first = await asyncio.to_thread(answered, "first")
            assert first is not None
            await until_async(lambda: site.advice() is not None)
            await until_async(lambda: {one.plan for one in site.audit.last(50) if one.acted} >= set(first.plans))
            assert len(first.plans) == 1
            site.bus.put(MODE, Mode(send_rate="off", nodes="off", slices="off", routes="off"))
            await asyncio.sleep(1.0)
            assert await asyncio.to_thread(answered, "second") == Applied(plans=())
            site.bus.put(MODE, Mode(frozen=True))
            await asyncio.sleep(1.0)
            site.bus.put(APPLY, Apply(once="third"), lease_s=10.0)
            await asyncio.sleep(1.0)
            assert site.bus.entry(APPLY) is not None, "who is frozen obeys nothing, and does not say it has"

    asyncio.run(scenario())


def test_what_is_foretold_is_by_the_leaders_settings(
    site: Site, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By those of who asks, devices would be held."""
    monkeypatch.setenv("TIDEGATE_CONTROLLER__OVERLOAD", OVERLOAD)

    async def scenario() -> None:
        async with controlling(site.here, policy="none", options={}):
            await until_async(lambda: leader_built_from(site.here) is not None)
            await asyncio.to_thread(plan.plan, site.state)

    asyncio.run(scenario())
    told = capsys.readouterr()
    assert "devices are asked" not in told.out
    assert "with your own" not in told.err
    assert leader_built_from(site.here) is None, "nobody leads any more"


def test_whose_settings_are_used_is_said(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    assert plan._built_from(site.here, None).controller == ControllerSettings()
    assert capsys.readouterr().err == "No controller that leads says its settings: this is with your own.\n"


def test_what_is_decided_or_said_while_a_plan_measures_counts(site: Site) -> None:
    def meanwhile(_: str) -> None:
        site.bus.put(LOOP_STATE, LoopState(planner=PlannerState(plans=41)))
        site.bus.put(MODE, Mode(send_rate="shadow"))

    outcome, mode = foresee(site.here, BUILT_FROM, meanwhile)
    assert mode.send_rate == "shadow"
    assert min(int(one.plan) for one in outcome.proposals) == 42
    assert [one.acts for one in outcome.proposals if one.by == "send-rate"] == [False]
