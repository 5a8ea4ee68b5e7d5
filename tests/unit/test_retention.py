"""Nothing leaves the log before every job that reads it has committed it."""

import pytest

from tidegate.pipeline.retention import below_every_job


@pytest.mark.parametrize(
    ("committed", "others", "safe"),
    [
        pytest.param({0: 9, 1: 4}, [], {0: 9, 1: 4}, id="no other job reads the log"),
        pytest.param({0: 9, 1: 4}, [{0: 5}], {0: 5, 1: 4}, id="a slower job holds its slice back"),
        pytest.param({0: 9}, [{0: 12, 7: 1}], {0: 9}, id="a faster job does not push"),
        pytest.param({0: 9}, [{0: 0}, {0: 3}], {0: 0}, id="a job that has not begun keeps everything"),
    ],
)
def test_the_slowest_job_decides(committed: dict[int, int], others: list[dict[int, int]], safe: dict[int, int]) -> None:
    assert below_every_job(committed, others) == safe
