"""Whatever happens in whatever order: epochs never fall, and a change of owner always raises one."""

from hypothesis import given
from hypothesis import strategies as st

from tidegate.control.slicing.transfer import Assignment, all_free

NODES = ["a", "b", "c"]
alive = st.lists(st.sampled_from(NODES), unique=True)
steps = st.one_of(
    st.tuples(st.just("adopt"), alive),
    st.tuples(st.just("request"), st.integers(0, 3), st.sampled_from(NODES), alive),
    st.tuples(st.just("release"), st.sampled_from(NODES), alive),
    st.tuples(st.just("vacate"), st.sampled_from(NODES)),
    st.tuples(st.just("renew"), st.sampled_from(NODES)),
)


def applied(before: Assignment, step: tuple) -> Assignment:
    match step:
        case ("adopt", living):
            return before.adopt(living)[0]
        case ("request", slice_, taker, living):
            after = before.request(slice_, taker, living)
            return before if isinstance(after, str) else after
        case ("release", node, living):
            return before.release(node, living, ready=range(4))
        case ("vacate", node):
            return before.vacate(node)
        case ("renew", node):
            return before.renew(node)
    raise AssertionError(step)


@given(st.lists(steps, max_size=30))
def test_a_change_of_owner_raises_the_epoch_and_nothing_lowers_it(history: list[tuple]) -> None:
    assignment = all_free(4)
    for step in history:
        after = applied(assignment, step)
        for old, new in zip(assignment.ownerships, after.ownerships, strict=True):
            assert new.epoch >= old.epoch
            if new.owner != old.owner:
                assert new.epoch > old.epoch
        assignment = after


@given(st.lists(steps, max_size=30), st.lists(st.sampled_from(NODES), unique=True, min_size=1))
def test_after_adopting_every_slice_has_a_living_owner(history: list[tuple], living: list[str]) -> None:
    assignment = all_free(4)
    for step in history:
        assignment = applied(assignment, step)
    adopted, _ = assignment.adopt(living)
    assert all(ownership.owner in living for ownership in adopted.ownerships)
