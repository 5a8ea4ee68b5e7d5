"""Messages that readers did not get: asked for again and again, and passed over only when nobody has them."""

import pytest

from tidegate.machine.evidence import Evidence
from tidegate.model.errors import BrokerUnavailableError
from tidegate.model.positions import position
from tidegate.pipeline.problems import doubted_in
from tidegate.pipeline.sources.holes import ASK_S, MISSING_S_MIN, SILENT_S, Holes


class Log:
    """Sequences that the brokers have of slice 0."""

    def __init__(self, *sequences: int) -> None:
        self.sequences = set(sequences)
        self.asked = 0
        self.silent = False

    def next_sequence(self, slice_: int, sequence: int) -> int | None:
        assert slice_ == 0
        self.asked += 1
        if self.silent:
            raise BrokerUnavailableError("no answer.")
        return min((one for one in self.sequences if one >= sequence), default=None)


def asked_for(holes: Holes, place: int, since_s: float, seconds: float) -> list[int | None]:
    """What is known of the hole behind ``place``, asked ten times a second."""
    return [holes.ask(0, place, since_s + tenth / 10) for tenth in range(round(seconds * 10) + 1)]


def test_a_slice_is_read_up_to_the_message_in_doubt() -> None:
    holes = Holes({0: 75}, Log().next_sequence)
    assert holes.before(0, 50, 100) == 74
    assert holes.before(0, position(3, 50), position(3, 100)) == position(3, 74)
    assert holes.before(0, 50, 60) == 60
    assert holes.before(0, 75, 100) == 100, "it is behind that"
    assert holes.before(1, 50, 100) == 100
    assert holes.ask(0, 50, 0.0) is None


def test_a_message_that_nobody_has_for_long_is_missing() -> None:
    log = Log(74, 78, 79)
    holes = Holes({0: 75}, log.next_sequence)
    assert set(asked_for(holes, 74, 0.0, MISSING_S_MIN - 0.1)) == {None}
    assert "Slice 0 has no message 75" in holes.sentences()[0]
    assert holes.ask(0, 74, MISSING_S_MIN) == 78
    assert log.asked <= MISSING_S_MIN / ASK_S + 1
    assert holes.ask(0, 77, MISSING_S_MIN) is None, "the slice has gone on"
    assert holes.sentences() == []
    assert holes.before(0, 77, 100) == 100


def test_a_message_that_comes_after_all_is_read() -> None:
    log = Log(74, 76)
    holes = Holes({0: 75}, log.next_sequence)
    assert set(asked_for(holes, 74, 0.0, MISSING_S_MIN / 2)) == {None}
    log.sequences.add(75)
    assert set(asked_for(holes, 74, MISSING_S_MIN / 2, MISSING_S_MIN)) == {None}
    assert holes.before(0, 74, 100) == 100
    assert holes.sentences() == []


def test_one_that_comes_back_behind_it_is_waited_for_anew() -> None:
    log = Log(74, 90)
    holes = Holes({0: 75}, log.next_sequence)
    assert set(asked_for(holes, 74, 0.0, MISSING_S_MIN - 1)) == {None}
    log.sequences.add(80)
    assert set(asked_for(holes, 74, MISSING_S_MIN - 1, MISSING_S_MIN - 1)) == {None}
    assert asked_for(holes, 74, 2 * MISSING_S_MIN, 0.0) == [80]


def test_while_a_broker_does_not_answer_nothing_is_certain() -> None:
    log = Log(74, 78)
    holes = Holes({0: 75}, log.next_sequence)
    assert set(asked_for(holes, 74, 0.0, MISSING_S_MIN - 1)) == {None}
    log.silent = True
    asked = log.asked
    assert set(asked_for(holes, 74, MISSING_S_MIN - 1, SILENT_S)) == {None}
    assert log.asked - asked <= 2, "nor is it asked often"
    log.silent = False
    began_s = MISSING_S_MIN + 2 * SILENT_S
    assert set(asked_for(holes, 74, began_s, MISSING_S_MIN - 0.1)) == {None}
    assert asked_for(holes, 74, began_s + MISSING_S_MIN, 0.0) == [78]


def test_nothing_is_passed_over_for_the_sake_of_nothing() -> None:
    log = Log(74)
    holes = Holes({0: 75}, log.next_sequence)
    assert set(asked_for(holes, 74, 0.0, 3 * MISSING_S_MIN)) == {None}
    log.sequences.add(77)
    assert asked_for(holes, 74, 4 * MISSING_S_MIN, MISSING_S_MIN + 1)[-1] == 77


@pytest.mark.parametrize(
    ("where", "expected", "doubted"),
    [
        ("slice 3", "7", {3: 7}),
        ("slice 3", "Mark(stamp_us=1, digest=2)", {}),  # another message, not none
        ("readings, slice 3", "7", {}),
        ("", "None", {}),
    ],
)
def test_what_readers_did_not_get_is_known_from_what_they_left(
    where: str, expected: str, doubted: dict[int, int]
) -> None:
    assert doubted_in([Evidence(sentence="No.", where=where, expected=expected)]) == doubted
