"""A position is an incarnation and a sequence in one integer; neither may run over into the other."""

import pytest

from tidegate.model.errors import TidegateError
from tidegate.model.positions import SEQUENCE_MAX, incarnation_of, position, sequence_of


@pytest.mark.parametrize(("incarnation", "sequence"), [(0, 0), (0, SEQUENCE_MAX), (7, 1), (7, SEQUENCE_MAX)])
def test_a_position_gives_back_what_it_was_made_of(incarnation: int, sequence: int) -> None:
    place = position(incarnation, sequence)
    assert (incarnation_of(place), sequence_of(place)) == (incarnation, sequence)


@pytest.mark.parametrize("sequence", [SEQUENCE_MAX + 1, -1])
def test_a_sequence_that_has_no_place_is_an_error_and_not_another_incarnation(sequence: int) -> None:
    with pytest.raises(TidegateError, match=f"^Message {sequence} of a slice has no position in the tables"):
        position(1, sequence)
