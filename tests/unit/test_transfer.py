"""Who owns which slice: literal assignments before and after each step."""

import msgspec
import pytest

from tidegate.control.slicing.transfer import Assignment, Ownership, all_free


def assigned(*entries: tuple[str | None, int] | tuple[str | None, int, str]) -> Assignment:
    return Assignment(tuple(Ownership(*entry) for entry in entries))


@pytest.mark.parametrize(
    ("before", "alive", "after"),
    [
        pytest.param(all_free(3), ["a"], assigned(("a", 1), ("a", 1), ("a", 1)), id="a first node takes everything"),
        pytest.param(all_free(4), ["b", "a"], assigned(("a", 1), ("b", 1), ("a", 1), ("b", 1)), id="two nodes share"),
        pytest.param(
            assigned(("a", 3), ("b", 5)), ["a"], assigned(("a", 3), ("a", 6)), id="the dead node's slice moves on"
        ),
        pytest.param(
            assigned(("a", 3), ("b", 5)), [], assigned(("a", 3), ("b", 5)), id="nobody lives, nothing changes"
        ),
        pytest.param(
            assigned(("a", 3, "c"), ("b", 5)),
            ["b", "c"],
            assigned(("c", 4), ("b", 5)),
            id="a named taker comes first",
        ),
        pytest.param(
            assigned(("a", 3, "c"), ("b", 5)),
            ["b"],
            assigned(("b", 4), ("b", 5)),
            id="a taker that died too gets nothing",
        ),
        pytest.param(
            assigned(("a", 1), ("a", 1), ("b", 1), ("x", 1)),
            ["a", "b"],
            assigned(("a", 1), ("a", 1), ("b", 1), ("b", 2)),
            id="the node with the fewest slices takes over",
        ),
    ],
)
def test_adopting(before: Assignment, alive: list[str], after: Assignment) -> None:
    adopted, changes = before.adopt(alive)
    assert adopted == after
    assert [change.slice for change in changes] == [
        s for s, (old, new) in enumerate(zip(before.ownerships, after.ownerships, strict=True)) if old != new
    ]
    assert all(change.reason for change in changes)


def test_a_request_names_a_taker_and_the_owner_goes_on() -> None:
    assert assigned(("a", 2)).request(0, "b", ["a", "b"]) == assigned(("a", 2, "b"))


def test_a_free_slice_goes_to_the_taker_at_once() -> None:
    assert assigned((None, 2)).request(0, "b", ["b"]) == assigned(("b", 3))


@pytest.mark.parametrize(
    ("slice_", "taker", "says"),
    [
        (5, "b", "there is no slice 5: slices are 0 to 0"),
        (-1, "b", "there is no slice -1"),
        (0, "z", "there is no running node z: running nodes are a, b"),
        (0, "a", "slice 0 is on node a already"),
    ],
)
def test_requests_that_are_refused_say_why(slice_: int, taker: str, says: str) -> None:
    refusal = assigned(("a", 2)).request(slice_, taker, ["a", "b"])
    assert isinstance(refusal, str)
    assert says in refusal


def test_release_hands_over_under_a_higher_epoch_and_only_what_has_a_taker() -> None:
    before = assigned(("a", 2, "b"), ("a", 2), ("c", 7, "a"))
    assert before.release("a", ["a", "b", "c"], ready=[0, 1]) == assigned(("b", 3), ("a", 2), ("c", 7, "a"))


def test_release_keeps_the_slice_when_the_taker_died() -> None:
    assert assigned(("a", 2, "b")).release("a", ["a"], ready=[0]) == assigned(("a", 2))


def test_vacating_frees_slices_and_honours_takers() -> None:
    assert assigned(("a", 2), ("a", 4, "b"), ("c", 1)).vacate("a") == assigned((None, 3), ("b", 5), ("c", 1))


def test_renewing_raises_only_the_own_epochs() -> None:
    assert assigned(("a", 2), ("b", 4)).renew("a") == assigned(("a", 3), ("b", 4))


def test_promised_are_the_slices_that_others_still_hold() -> None:
    assignment = assigned(("a", 1, "b"), ("b", 1, "a"), ("b", 2), (None, 3), ("a", 4))
    assert assignment.promised_to("b") == [0]
    assert assignment.promised_to("a") == [1]
    assert assignment.promised_to("c") == []


def test_the_document_is_what_nodes_of_other_versions_write() -> None:
    document = b'{"holds":[{"owner":"a","epoch":3,"taker":"b"},{}]}'
    assert msgspec.json.decode(document, type=Assignment) == assigned(("a", 3, "b"), (None, 0))
    assert msgspec.json.encode(assigned(("a", 3, "b"), (None, 0))) == document


def test_a_slice_stays_until_the_tables_have_what_was_read_of_it() -> None:
    before = assigned(("a", 2, "b"), ("a", 2, "b"))
    assert before.release("a", ["a", "b"], ready=[1]) == assigned(("a", 2, "b"), ("b", 3))


def test_a_document_older_than_the_tables_goes_above_their_epochs() -> None:
    before = assigned(("a", 1), ("b", 1), ("a", 9))
    assert before.outdo("a", {0: 7, 1: 7, 2: 7}) == assigned(("a", 8), ("b", 1), ("a", 9))
