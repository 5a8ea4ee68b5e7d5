"""Which device samples when: exact times, however devices come and go."""

import pytest

from tidegate.devices.sampling import Sampling


def run(sampling: Sampling, times_s: list[float]) -> list[tuple[float, int]]:
    taken = []
    for now_s in times_s:
        while (index := sampling.take(now_s)) is not None:
            taken.append((now_s, index))
    return taken


QUARTERS = [100 + number / 4 for number in range(13)]


def test_each_device_samples_at_its_own_phase() -> None:
    sampling = Sampling(1.0, 100.0)
    sampling.begin(0, 0.0, 100.0)
    sampling.begin(1, 0.75, 100.0)
    expected = [(100.0, 0), (100.75, 1), (101.0, 0), (101.75, 1), (102.0, 0), (102.75, 1), (103.0, 0)]
    assert run(sampling, QUARTERS) == expected
    assert (sampling.late, sampling.late_s_max) == (0, 0.0)


@pytest.mark.parametrize("back_s", [101.0, 101.25, 101.5, 102.0])
def test_who_comes_back_keeps_its_phase_and_samples_once(back_s: float) -> None:
    sampling = Sampling(1.0, 100.0)
    sampling.begin(7, 0.5, 100.0)
    assert run(sampling, QUARTERS[:4]) == [(100.5, 7)]
    sampling.end(7)
    assert 7 not in sampling
    assert run(sampling, [now_s for now_s in QUARTERS[4:] if now_s < back_s]) == []
    sampling.begin(7, 0.5, back_s)
    later = run(sampling, [now_s for now_s in QUARTERS if now_s >= back_s])
    assert later == [(at_s, 7) for at_s in (101.5, 102.5) if at_s >= back_s]


def test_what_is_late_is_taken_all_the_same_and_counted() -> None:
    sampling = Sampling(1.0, 100.0)
    sampling.begin(0, 0.0, 100.0)
    assert run(sampling, [102.25]) == [(102.25, 0)] * 3
    assert (sampling.late, sampling.late_s_max) == (2, 2.25)
