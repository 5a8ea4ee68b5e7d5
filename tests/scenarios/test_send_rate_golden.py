"""Fixed seeds, fixed results: a change of any policy, of the loop or of the simulator shows here first.

Where a change is meant, write the results anew and look at the difference::

    python tests/scenarios/test_send_rate_golden.py
"""

import json
from pathlib import Path

import pytest

from tidegate.experiments import gotin_runs, hard_cases
from tidegate.experiments.running import Job
from tidegate.sim.run import simulate

FILE = Path(__file__).with_name("send_rate_golden.json")
SHARE_PERCENT = 30
SEED = 101
EXACT = ("sent", "processed", "readings", "decisions", "queue_length_max")
NEAR = ("delay_mean_s", "delay_max_s", "interval_mean_s", "nodes_mean")


def jobs() -> dict[str, Job]:
    """Every strategy of the case study at one overload share, and ours where monitoring is late and noisy."""
    scenario = gotin_runs.gotin_case.scenario(SHARE_PERCENT)
    found = {one.name: Job(scenario=scenario, strategy=one, seed=SEED) for one in gotin_runs.strategies(SHARE_PERCENT)}
    ours = found[gotin_runs.ADAPTIVE].strategy
    found["adaptive, late and noisy"] = Job(scenario=hard_cases.late_and_noisy(), strategy=ours, seed=SEED)
    return found


def figures(job: Job) -> dict[str, float]:
    row = simulate(job.scenario, job.strategy, job.seed).row()
    return {name: row[name] for name in (*EXACT, *NEAR)}


@pytest.mark.parametrize("name", list(jobs()))
def test_the_result_is_what_it_was(name: str) -> None:
    expected = json.loads(FILE.read_text())[name]
    found = figures(jobs()[name])
    assert {key: found[key] for key in EXACT} == {key: expected[key] for key in EXACT}
    assert {key: found[key] for key in NEAR} == pytest.approx({key: expected[key] for key in NEAR}, rel=1e-6)


if __name__ == "__main__":
    FILE.write_text(json.dumps({name: figures(job) for name, job in jobs().items()}, indent=2) + "\n")
