"""Learning how much work a message is: steady, noisy, after a jump, and from mixtures."""

import random

import pytest

from tidegate.control.send_rate.work import Work


def taught(samples: list[tuple[float, dict[str, float]]], costs: dict[str, float] | None = None) -> Work:
    work = Work()
    for found_s, rates in samples:
        work = work.learnt(found_s, rates, costs or {}, 1.0, 30.0)
    return work


def test_before_any_evidence_nothing_is_known() -> None:
    assert not Work().is_known


def test_the_first_evidence_is_believed() -> None:
    assert taught([(0.2, {"a": 10.0})]).of("a", {}) == pytest.approx(0.2)


def test_noise_is_averaged() -> None:
    chance = random.Random(1)
    work = taught([(0.2 * chance.gauss(1, 0.2), {"a": 10.0}) for _ in range(60)])
    assert work.of("a", {}) == pytest.approx(0.2, rel=0.08)


@pytest.mark.parametrize(("noise", "within_s"), [(0.0, 6), (0.05, 20)])
def test_a_jump_is_followed_within_seconds(noise: float, within_s: int) -> None:
    """The noisier the evidence, the longer it takes to tell a jump from noise."""
    chance = random.Random(2)
    before = [(0.2 * chance.gauss(1, noise), {"a": 10.0}) for _ in range(60)]
    after = [(0.4 * chance.gauss(1, noise), {"a": 10.0}) for _ in range(within_s)]
    assert taught(before + after).of("a", {}) == pytest.approx(0.4, rel=0.15)


def test_a_mixture_that_changes_tells_costs_apart() -> None:
    samples = []
    for step in range(120):
        light = 1 + step % 10
        rates = {"light": float(light), "heavy": float(11 - light)}
        samples.append(((0.1 * light + 0.4 * (11 - light)) / 11, rates))
    work = taught(samples)
    assert work.of("light", {}) == pytest.approx(0.1, rel=0.15)
    assert work.of("heavy", {}) == pytest.approx(0.4, rel=0.1)


def test_given_costs_are_one_unknown() -> None:
    costs = {"light": 1.0, "heavy": 4.0}
    work = taught([(0.25, {"light": 5.0, "heavy": 5.0})], costs)
    assert work.of("light", costs) == pytest.approx(0.1)
    assert work.of("heavy", costs) == pytest.approx(0.4)
    assert work.mixed({"light": 3.0, "heavy": 1.0}, costs) == pytest.approx(0.175)


def test_a_class_that_was_never_seen_is_an_average_one() -> None:
    assert taught([(0.2, {"a": 10.0})]).of("b", {}) == pytest.approx(0.2)


def test_one_odd_measurement_makes_no_class_free() -> None:
    work = taught([(0.2, {"a": 5.0, "b": 5.0})] * 20 + [(1e-9, {"a": 9.0, "b": 1.0})])
    assert work.of("a", {}) > 0
    assert work.of("b", {}) > 0
