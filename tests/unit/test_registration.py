"""What becomes of a name that is added, revoked, rotated and added again."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.model.credentials import GENERATION_MAX
from tidegate.model.errors import UserError
from tidegate.model.registration import Entry, Registered, Revocation, newer, shard_of

NOW_S, GRACE_S = 1_000.0, 60.0


def allowed(entry: Entry, now_s: float) -> list[int]:
    """Of the first generations, those whose passwords are taken."""
    if entry.is_revoked:
        return []
    lowest = 1 if entry.revocation is None else entry.revocation.lowest(now_s)
    return [generation for generation in range(1, 8) if lowest <= generation <= entry.generation]


@pytest.mark.parametrize(
    ("revocation", "lowest"),
    [
        pytest.param(Revocation(3, 100.0), [1, 3, 3], id="after a grace"),
        pytest.param(Revocation(3, 100.0, False, 2), [2, 3, 3], id="what was refused before stays so"),
    ],
)
def test_a_revocation_counts_from_its_moment_on(revocation: Revocation, lowest: list[int]) -> None:
    assert [revocation.lowest(now_s) for now_s in (99.9, 100.0, 200.0)] == lowest
    assert msgspec.json.decode(msgspec.json.encode(revocation), type=Revocation) == revocation


def test_a_device_that_is_added_twice_keeps_its_password() -> None:
    once = Entry().added(NOW_S, "line 4")
    assert once == Entry(Registered(1, NOW_S, "line 4"))
    assert once.added(NOW_S + 1) == once
    assert once.added(NOW_S + 1, "line 5").registered == Registered(1, NOW_S, "line 5")


def test_a_rotation_takes_two_generations_for_the_grace_and_one_afterwards() -> None:
    rotated = Entry().added(NOW_S).rotated(NOW_S, GRACE_S)
    assert (allowed(rotated, NOW_S), allowed(rotated, NOW_S + GRACE_S)) == ([1, 2], [2])
    again = rotated.rotated(NOW_S + 1, GRACE_S)
    assert allowed(again, NOW_S + 1) == [2, 3], "what is older ends with the next rotation, whatever its grace was"
    assert allowed(again, NOW_S + 1 + GRACE_S) == [3]


def test_a_rotation_that_is_done_again_is_done_once() -> None:
    added = Entry().added(NOW_S)
    once = added.rotated_to(2, NOW_S, GRACE_S)
    assert once == added.rotated(NOW_S, GRACE_S)
    assert once.rotated_to(2, NOW_S + 1, GRACE_S) == once
    assert once.rotated(NOW_S + 1, GRACE_S).rotated_to(2, NOW_S, GRACE_S) == once.rotated(NOW_S + 1, GRACE_S)
    half = Entry(once.registered, added.revocation)
    assert half.rotated_to(2, NOW_S, GRACE_S) == once, "the register was written, and the other part was not"
    assert allowed(once.rotated_to(2, NOW_S + 1, 0.0), NOW_S + 1) == [2], "a grace may become shorter"


def test_a_rotation_lets_nobody_in_who_was_revoked_meanwhile() -> None:
    revoked = Entry().added(NOW_S).revoked(NOW_S)
    assert revoked.rotated(NOW_S + 1, GRACE_S) == revoked
    assert revoked.rotated_to(2, NOW_S + 1, GRACE_S) == revoked.rotated_to(9, NOW_S + 1, GRACE_S) == revoked


def test_a_revoked_device_comes_again_with_a_password_that_nobody_had() -> None:
    revoked = Entry().added(NOW_S).rotated(NOW_S, GRACE_S).revoked(NOW_S + 1)
    assert allowed(revoked, NOW_S + 2) == []
    assert revoked.revoked(NOW_S + 2) == revoked
    assert allowed(revoked.added(NOW_S + 3), NOW_S + 3) == [3]


def test_who_was_never_registered_can_be_revoked_and_added() -> None:
    revoked = Entry().revoked(NOW_S)
    assert revoked.registered is None
    assert allowed(revoked.added(NOW_S), NOW_S) == [2]


def test_a_register_that_was_lost_is_made_up_for_by_what_was_revoked() -> None:
    rotated = Entry().added(NOW_S).rotated(NOW_S, GRACE_S)
    left = Entry(None, rotated.revocation)
    assert (left.generation, left.added(NOW_S).generation) == (2, 2)
    left = Entry(None, rotated.revoked(NOW_S).revocation)
    assert left.added(NOW_S).generation == 3


def test_generations_have_an_end() -> None:
    with pytest.raises(UserError, match="no generation behind"):
        Entry(Registered(GENERATION_MAX, NOW_S)).rotated(NOW_S, GRACE_S)


@given(st.lists(st.sampled_from(("add", "revoke", "rotate")), max_size=12), st.booleans())
def test_no_step_gives_back_what_was_taken(steps: list[str], grace: bool) -> None:
    """Whatever is done, in any order: the newest password counts unless revoked, and a refused one stays refused."""
    entry, refused = Entry(), set[int]()
    for number, step in enumerate(steps):
        now_s = NOW_S + number
        was_revoked = entry.is_revoked
        entry = {
            "add": lambda entry=entry, at_s=now_s: entry.added(at_s),
            "revoke": lambda entry=entry, at_s=now_s: entry.revoked(at_s),
            "rotate": lambda entry=entry, at_s=now_s: entry.rotated(at_s, GRACE_S if grace else 0.0),
        }[step]()
        taken = set(allowed(entry, now_s))
        assert entry.is_revoked >= (was_revoked and step != "add"), "only who adds a name lets it in again"
        assert not taken & refused
        assert entry.is_revoked or entry.generation > 7 or entry.generation in taken
        refused |= set(range(1, min(entry.generation, 7) + 1)) - taken
    assert len(set(allowed(entry, NOW_S + len(steps)))) <= 2


def test_of_two_copies_the_one_with_the_higher_generation_counts() -> None:
    old, lifted, new = Revocation(2, 0.0, True), Revocation(2, 0.0), Revocation(3, 0.0)
    assert newer(None, old) == old
    assert newer(lifted, old) == lifted, "a name that was added again stays so"
    assert newer(lifted, new) == new, "a bus that was set back learns what it has forgotten"


def test_names_spread_over_all_shards() -> None:
    shards = {shard_of(f"pump-{number}") for number in range(5_000)}
    assert shards == {f"{number:02x}" for number in range(256)}
