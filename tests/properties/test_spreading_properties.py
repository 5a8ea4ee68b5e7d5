"""Spreading slices: even, complete, no move too many, and nothing left to do afterwards."""

from hypothesis import given
from hypothesis import strategies as st

from tidegate.control.slicing.spreading import slices_to_move, stayers

NAMES = st.lists(st.integers(1, 30).map("node-{}".format), min_size=1, max_size=6, unique=True)


@st.composite
def spreads(draw: st.DrawFn) -> tuple[dict[str, tuple[int, ...]], int]:
    names = draw(NAMES)
    owners = draw(st.lists(st.sampled_from(names), max_size=40))
    held = {name: tuple(s for s, owner in enumerate(owners) if owner == name) for name in names}
    return held, draw(st.integers(1, 8))


def after(held: dict[str, tuple[int, ...]], wanted: int) -> dict[str, tuple[int, ...]]:
    owner = {slice_: name for name, slices in held.items() for slice_ in slices}
    for move in slices_to_move(held, stayers(held, wanted)):
        assert owner[move.slice] == move.giver != move.taker
        owner[move.slice] = move.taker
    return {name: tuple(s for s in sorted(owner) if owner[s] == name) for name in held}


@given(spreads())
def test_it_ends_even_and_complete_and_stays_so(case: tuple[dict[str, tuple[int, ...]], int]) -> None:
    held, wanted = case
    spread = after(held, wanted)
    staying = stayers(held, wanted)
    counts = [len(spread[name]) for name in staying]
    assert max(counts) - min(counts) <= 1
    assert sum(counts) == sum(map(len, held.values()))
    assert slices_to_move(spread, staying) == ()


@given(spreads())
def test_no_even_spread_needs_fewer_moves(case: tuple[dict[str, tuple[int, ...]], int]) -> None:
    """Only what a node has beyond its share must leave; the larger shares are best given to those who have most."""
    held, wanted = case
    staying = stayers(held, wanted)
    least, over = divmod(sum(map(len, held.values())), len(staying))
    counts = sorted((len(held[name]) for name in staying), reverse=True)
    kept = sum(min(count, least + (place < over)) for place, count in enumerate(counts))
    assert len(slices_to_move(held, staying)) == sum(map(len, held.values())) - kept


@given(spreads())
def test_who_stays_has_a_lower_number_than_who_goes(case: tuple[dict[str, tuple[int, ...]], int]) -> None:
    held, wanted = case
    staying = stayers(held, wanted)
    assert len(staying) == min(wanted, len(held))
    numbers = {name: int(name.removeprefix("node-")) for name in held}
    assert all(numbers[stays] < numbers[goes] for stays in staying for goes in held.keys() - set(staying))


@given(spreads(), st.randoms(use_true_random=False))
def test_the_order_of_what_is_given_does_not_matter(case: tuple[dict[str, tuple[int, ...]], int], chance) -> None:
    held, wanted = case
    names = list(held)
    chance.shuffle(names)
    shuffled = {name: frozenset(held[name]) for name in names}
    assert slices_to_move(shuffled, stayers(names, wanted)) == slices_to_move(held, stayers(held, wanted))
