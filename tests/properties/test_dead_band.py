"""However a value wanders and advice comes and goes: every change is sent, nothing is discarded, no silence is long."""

import itertools
import random
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from tidegate.devices.aggregation import Aggregate
from tidegate.devices.dead_band import DeadBand
from tidegate.model.advice import Advice

SILENCE_S_MAX = 10.0
ROUNDING = 1e-9
CLASS = "siren"
VALUES = st.integers(-40, 40).map(lambda tenths: tenths / 10) | st.floats(-100, 100)
ADVICE = st.builds(
    lambda factor, lifetime_s: Advice(interval_s=3600, lifetime_s=lifetime_s, dead_bands={CLASS: factor, "other": 9}),
    st.floats(1, 20),
    st.floats(0.1, 30),
)
# A pause, then a sample, or advice, or a moment at which the network takes messages again or no longer.
STEPS = st.lists(st.tuples(st.floats(0, 8), VALUES | ADVICE | st.booleans()), max_size=60)
Step = tuple[float, float | Advice | bool]


class Sender:
    """A device that sends what is due as soon as it is, while it has room; it wakes when it is told to."""

    def __init__(self, width: float, seed: int = 0) -> None:
        self.band = DeadBand(width, random.Random(seed), silence_s_max=SILENCE_S_MAX, device_class=CLASS)
        self.now_s = 100.0
        self.has_room = True
        self.samples: list[float] = []
        self.sent: list[tuple[float, Aggregate]] = []
        self.references: list[float] = []  # the last sample of each message
        self.waiting: Aggregate | None = None

    def run(self, steps: list[Step]) -> "Sender":
        for pause_s, step in steps:
            self._wait(pause_s)
            if isinstance(step, Advice):
                self.band.advise(step, self.now_s)
            elif isinstance(step, bool):
                self.has_room = step
                self._send_if_due()
            else:
                self.sample(step)
        return self

    def sample(self, value: float) -> None:
        taken = Aggregate.of(value, self.now_s)
        self.waiting = taken if self.waiting is None else self.waiting.merged(taken)
        self.samples.append(value)
        self.band.sampled(value, self.now_s)
        self._send_if_due()

    def _wait(self, pause_s: float) -> None:
        end_s = self.now_s + pause_s
        due_s = self.band.due_s(self.now_s)
        if self.waiting is not None and self.now_s < due_s <= end_s:
            self.now_s = due_s
            self._send_if_due()
        self.now_s = end_s

    def _send_if_due(self) -> None:
        if self.waiting is not None and self.has_room and self.band.due_s(self.now_s) <= self.now_s:
            self.sent.append((self.now_s, self.waiting))
            self.references.append(self.samples[-1])
            self.waiting = None
            self.band.sent(self.now_s)


def always_room(steps: list[Step]) -> list[Step]:
    return [(pause_s, True if isinstance(step, bool) else step) for pause_s, step in steps]


@given(STEPS, st.floats(0.01, 50))
def test_nothing_is_discarded(steps: list[Step], width: float) -> None:
    sender = Sender(width).run(steps)
    messages = [message for _, message in sender.sent] + ([sender.waiting] if sender.waiting else [])
    assert sum(message.count for message in messages) == len(sender.samples)
    assert sum((message.total for message in messages), Fraction()) == sum(map(Fraction, sender.samples))


@given(STEPS, st.floats(0.01, 50))
def test_after_every_sample_the_other_side_is_off_by_less_than_the_width(steps: list[Step], width: float) -> None:
    sender = Sender(width)
    for step in always_room(steps):
        sender.run([step])
        if isinstance(step[1], float):
            assert abs(sender.samples[-1] - sender.references[-1]) < sender.band.width(sender.now_s)


@given(STEPS, st.floats(0.01, 50), st.integers(0, 100))
def test_no_silence_is_longer_than_allowed_where_samples_wait(steps: list[Step], width: float, seed: int) -> None:
    sender = Sender(width, seed)
    for step in always_room(steps):
        sender.run([step])
        if sender.waiting is not None:
            assert sender.now_s - sender.sent[-1][0] <= SILENCE_S_MAX + ROUNDING


@given(st.lists(VALUES, min_size=1, max_size=80), st.floats(0.01, 50))
def test_a_message_costs_a_change_of_at_least_the_width(values: list[float], width: float) -> None:
    """So the number of messages is bounded by how far the value went, over the width."""
    sender = Sender(width).run([(0.0, value) for value in values])
    assert sender.references[0] == values[0]
    assert all(abs(later - earlier) >= width for earlier, later in itertools.pairwise(sender.references))
    way = sum(abs(later - earlier) for earlier, later in itertools.pairwise(values))
    assert len(sender.sent) <= 1 + way / width * (1 + ROUNDING)


@given(st.lists(VALUES, min_size=1, max_size=80), st.floats(0.01, 5), st.floats(1, 20))
def test_of_a_value_that_only_rises_a_wider_band_sends_no_more(
    values: list[float], width: float, factor: float
) -> None:
    rising: list[Step] = [(0.0, value) for value in sorted(values)]
    advice = Advice(interval_s=0, lifetime_s=3600, dead_bands={CLASS: factor})
    assert len(Sender(width).run([(0.0, advice), *rising]).sent) <= len(Sender(width).run(rising).sent)


@given(STEPS, st.floats(0.01, 50))
def test_without_news_every_device_returns_to_its_own_width(steps: list[Step], width: float) -> None:
    sender = Sender(width).run(steps)
    assert sender.band.width(sender.now_s + 30.0 + ROUNDING) == width
