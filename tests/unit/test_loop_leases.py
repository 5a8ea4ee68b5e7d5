"""What devices keep to: the longest lease that anybody was told, and what a shadow hides."""

import pytest

from tidegate.loop import in_force
from tidegate.loop.families import SendRates
from tidegate.loop.knowledge import Knowledge, Standing
from tidegate.model.intents import EVERYBODY, Pace

HELD, FREE = {EVERYBODY: Pace(interval_s=100.0)}, {EVERYBODY: Pace(interval_s=0.0)}


def said(before: Standing, wanted: dict[str, Pace], at_s: float, *, acts: bool = True) -> tuple[Standing, str | None]:
    known = Knowledge(at_s=at_s, measured_at_s=at_s, complete=True, properties={}, in_force={"send-rate": before})
    return in_force.step(SendRates(), before, dict(wanted), known, 10.0, acts=acts)


def test_a_withdrawal_lasts_until_the_longest_lease_has_ended() -> None:
    """The interval was shortened step by step before: whoever heard the first one asks again only much later."""
    standing, _ = said(Standing(), HELD, 0.0)
    for second, interval_s in enumerate((50.0, 20.0, 5.0, 1.0), start=1):
        standing, _ = said(standing, {EVERYBODY: Pace(interval_s=interval_s)}, float(second))
    standing, what = said(standing, FREE, 5.0)
    assert (what, standing.decided_at_s + standing.lifetime_s) == ("decided", 300.0)
    told_s = []
    for second in range(6, 700):
        standing, what = said(standing, FREE, float(second))
        told_s += [second] if what is not None else []
    assert 200 < told_s[-1] <= 300, "and then there is silence"
    standing, _ = said(standing, {EVERYBODY: Pace(interval_s=1.0)}, 800.0)
    standing, _ = said(standing, FREE, 801.0)
    assert standing.lifetime_s == 10.0, "what was told long ago is over"


@pytest.mark.parametrize("wanted", [FREE, {EVERYBODY: Pace(interval_s=7.0)}])
def test_what_was_told_before_a_shadow_is_still_kept_to(wanted: dict[str, Pace]) -> None:
    standing, _ = said(Standing(), HELD, 0.0)
    for second in (1, 2, 3):
        standing, _ = said(standing, {EVERYBODY: Pace(interval_s=3.0 + second)}, float(second), acts=False)
    assert standing.kept_to(4.0) == HELD
    standing, what = said(standing, wanted, 4.0)
    assert (what, standing.acted, standing.values) == ("decided", True, wanted)
    if wanted == FREE:
        assert standing.decided_at_s + standing.lifetime_s == 300.0
    assert standing.behind is None


def test_shadows_do_not_pile_up() -> None:
    standing, _ = said(Standing(), HELD, 0.0)
    for second in range(1, 50):
        standing, _ = said(standing, {EVERYBODY: Pace(interval_s=float(second))}, float(second), acts=False)
    assert standing.behind is not None
    assert standing.behind.behind is None
    assert standing.kept_to(400.0) == {}, "it has lapsed by then"


def test_what_was_told_before_a_shadow_is_renewed_in_time_when_it_is_wanted_again() -> None:
    standing, _ = said(Standing(), HELD, 0.0)
    standing, _ = said(standing, {EVERYBODY: Pace(interval_s=3.0)}, 50.0, acts=False)
    told_s = []
    for second in range(60, 400):
        standing, what = said(standing, HELD, float(second))
        told_s += [second] if what is not None else []
    assert told_s[0] == 100, "a third of its lifetime after it was told"


def test_a_withdrawal_ends_though_the_clock_was_set_back() -> None:
    standing, _ = said(Standing(), HELD, 100_000.0)
    standing, _ = said(standing, FREE, 100_010.0)
    told = [said(standing, FREE, float(second))[1] for second in range(400)]
    assert told[0] == "again"
