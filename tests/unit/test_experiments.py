"""Experiments without their hours: which runs are kept, how the case is calibrated, and checks that can fail."""

import statistics
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tidegate.experiments import gotin_case, gotin_fig5, gotin_hard, gotin_runs, gotin_table1, hard_cases, tuning
from tidegate.experiments.gotin_checks import adaptive_checks
from tidegate.experiments.mean_intervals import mean_interval
from tidegate.experiments.running import KEPT_FILE, SERIES, Job, ReportRow, run_all
from tidegate.report.checks import Check
from tidegate.sim.run import check, simulate
from tidegate.sim.scenario import Load, Scenario, Service, Strategy

# -- running

SMALL = Scenario(
    name="small",
    seconds=4.0,
    classes=(Load(name="telemetry", pattern=((0.0, 3),)),),
    service=Service(rate_per_s=4.0, noise=0.5),
    window_s=1.0,
)
JOB = Job(scenario=SMALL, strategy=Strategy(policy="none"), seed=1)


def keep(out: Path, *jobs: Job) -> list[ReportRow]:
    """Rows that no simulation would give, so that whoever finds them has simulated nothing."""
    rows = [{"kept": place} for place in range(len(jobs))]
    lines = [msgspec.json.encode({"run": job.name, "row": row}) for job, row in zip(jobs, rows, strict=True)]
    (out / KEPT_FILE).write_bytes(b"".join(line + b"\n" for line in lines))
    return rows


def test_what_is_kept_is_not_run_again(tmp_path: Path) -> None:
    others = [msgspec.structs.replace(JOB, seed=seed) for seed in (2, 3)]
    first, second, third = keep(tmp_path, JOB, *others)
    told: list[str] = []
    assert run_all([others[1], JOB, others[0], JOB], told.append, tmp_path) == [third, first, second, first]
    assert told == []


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(msgspec.structs.replace(JOB, seed=2), id="the seed"),
        pytest.param(msgspec.structs.replace(JOB, series=True), id="what is kept of it"),
        pytest.param(
            msgspec.structs.replace(JOB, strategy=Strategy(policy="none", overload="waiting > 2")), id="the strategy"
        ),
        pytest.param(
            msgspec.structs.replace(JOB, strategy=Strategy(policy="gotin", options={"k_protect": 0.9})), id="the policy"
        ),
        pytest.param(
            msgspec.structs.replace(JOB, scenario=msgspec.structs.replace(SMALL, seconds=5.0)), id="the scenario"
        ),
    ],
)
def test_a_changed_run_is_another_one(changed: Job) -> None:
    assert changed.name != JOB.name


def test_the_order_of_options_is_no_change() -> None:
    options = {"k_protect": 0.9, "k_recover": 1.2}
    turned = dict(reversed(options.items()))
    names = {
        msgspec.structs.replace(JOB, strategy=Strategy(policy="gotin", options=one)).name for one in (options, turned)
    }
    assert len(names) == 1


def test_a_run_that_was_cut_off_is_run_again_and_everything_is_kept_then(tmp_path: Path) -> None:
    """The first is kept, the second was cut off within its line, the third was never run."""
    cut, missing = (msgspec.structs.replace(JOB, seed=seed, series=True) for seed in (2, 3))
    first, _ = keep(tmp_path, JOB, cut)
    file = tmp_path / KEPT_FILE
    file.write_bytes(file.read_bytes()[:-9])
    told: list[str] = []
    rows = run_all([JOB, cut, missing], told.append, tmp_path)
    assert rows[0] == first
    expected = simulate(cut.scenario, cut.strategy, cut.seed)
    assert rows[1] == expected.row() | {"series": {name: getattr(expected.series, name) for name in SERIES}}
    assert rows[2]["seed"] == 3
    assert told == ["2 of 3 runs", "3 of 3 runs"]
    told.clear()
    assert run_all([JOB, cut, missing], told.append, tmp_path) == rows
    assert told == []


def test_lines_that_say_nothing_are_passed_over(tmp_path: Path) -> None:
    (row,) = keep(tmp_path, JOB)
    file = tmp_path / KEPT_FILE
    file.write_bytes(b'\n[1]\n7\nnull\n{"run": "x"}\n{"run": ["x"], "row": {}}\n\xff\xfe"\n' + file.read_bytes())
    assert run_all([JOB], lambda _: None, tmp_path) == [row]


# -- means and intervals


def test_one_value_has_no_width() -> None:
    found = mean_interval([3.0])
    assert (found.mean, found.half) == (3.0, 0.0)


@pytest.mark.parametrize(
    ("values", "half"),
    [
        pytest.param([1.0, 3.0], 12.71, id="two: one degree of freedom"),
        pytest.param([1.0, 2.0, 3.0], 4.30 / 3**0.5, id="three"),
        pytest.param([0.0, 2.0] * 10, 2.09 * (20 / 19) ** 0.5 / 20**0.5, id="the last of the table"),
        pytest.param([0.0, 2.0] * 50, 1.96 * (100 / 99) ** 0.5 / 100**0.5, id="many: the normal one"),
    ],
)
def test_the_interval_is_students(values: list[float], half: float) -> None:
    found = mean_interval(values)
    assert found.half == pytest.approx(half)
    assert found.mean == statistics.fmean(values)


# -- the case study


@pytest.mark.parametrize("share_percent", gotin_case.NODES_MAX)
def test_every_overload_share_is_met(share_percent: int) -> None:
    scenario = gotin_case.scenario(share_percent)
    pattern = gotin_case.stretched(share_percent)
    assert gotin_case.overload_share(pattern, scenario.service.nodes_max) == pytest.approx(
        share_percent / 100, abs=0.01
    )
    assert scenario.classes[0].devices().devices_max == max(devices for _, devices in pattern)
    assert scenario.seconds == pattern[-1][0] == gotin_case.SECONDS


def test_the_maximum_of_nodes_is_the_published_one_in_the_mean() -> None:
    published = gotin_runs.published()["baseline"]["nodes_mean"]
    assert statistics.fmean(gotin_case.NODES_MAX.values()) == published == 6.5


def test_the_share_falls_with_the_nodes_and_is_everything_at_none() -> None:
    pattern = gotin_case.stretched(20)
    shares = [gotin_case.overload_share(pattern, node_count) for node_count in range(15)]
    assert shares[0] == 1.0
    assert shares[-1] == 0.0
    assert shares == sorted(shares, reverse=True)


@pytest.mark.parametrize("share_percent", gotin_case.NODES_MAX)
def test_every_strategy_fits_its_scenario(share_percent: int) -> None:
    strategies = gotin_runs.strategies(share_percent)
    for strategy in strategies:
        check(gotin_case.scenario(share_percent), strategy)
    titles = [strategy.title for strategy in strategies]
    assert len(set(titles)) == len(titles)
    assert set(gotin_runs.published()) == set(gotin_case.PUBLISHED) <= set(titles)


@pytest.mark.parametrize("scenario", hard_cases.hard(), ids=lambda scenario: scenario.name)
def test_every_strategy_fits_what_is_harder(scenario: Scenario) -> None:
    for strategy in gotin_hard.strategies():
        check(scenario, strategy)


def test_seeds_of_tuning_are_not_seeds_of_results() -> None:
    assert not set(gotin_case.TRAINING_SEEDS) & set(gotin_case.HELD_OUT_SEEDS)


# -- tuning


def test_every_policy_has_the_same_budget_and_begins_with_its_defaults() -> None:
    found = {policy: tuning.draws(policy, tuning.BUDGET) for policy in tuning.RANGES}
    assert {len(tried) for tried in found.values()} == {tuning.BUDGET}
    assert [tried[0] for tried in found.values()] == [{}] * len(found)
    assert all(len({tuple(one.values()) for one in tried}) == tuning.BUDGET for tried in found.values())


@pytest.mark.parametrize("policy", tuning.RANGES)
def test_draws_are_the_same_every_time_lie_in_their_ranges_and_can_be_built(policy: str) -> None:
    tried = tuning.draws(policy, tuning.BUDGET)
    assert tuning.draws(policy, tuning.BUDGET) == tried
    assert tuning.draws(policy, 3) == tried[:3]
    for options in tried[1:]:
        assert set(options) == set(tuning.RANGES[policy])
        for name, value in options.items():
            assert tuning.RANGES[policy][name].low <= value <= tuning.RANGES[policy][name].high
    for options in tried:
        check(gotin_case.scenario(50), tuning.strategy(policy, options))


@pytest.mark.parametrize("policy", tuning.RANGES)
def test_what_is_called_tuned_is_one_of_the_draws_and_no_worse_than_the_defaults(policy: str) -> None:
    found = tuning.tuned()[policy]
    assert found.options in tuning.draws(policy, tuning.BUDGET)
    assert found.score >= found.score_of_defaults


def test_the_length_of_the_queue_goes_to_the_event_and_not_to_the_policy() -> None:
    found = tuning.strategy("gotin", {"k_protect": 0.9, "queue_length": 12.5})
    assert (found.options, found.overload) == ({"k_protect": 0.9}, "waiting > nodes_working + 12.5")


# -- checks, on rows made by hand


def holding(checks: list[Check]) -> dict[str, bool]:
    return {one.name: one.holds for one in checks}


def table1_rows(**changes: dict[str, float]) -> list[ReportRow]:
    """The published figures, and ours a little better than them, at two shares and two seeds."""
    ours = {"processed": 6000.0, "delay_mean_s": 0.4, "delay_max_s": 2.0, "nodes_mean": 3.5}
    figures: dict[str, dict[str, float]] = dict(gotin_runs.published())
    for name in (gotin_runs.ADAPTIVE, gotin_runs.COUPLED_ADAPTIVE, tuning.ORACLE):
        figures[name] = figures["state-aware"] | ours
    return [
        {"strategy": name, "share_percent": share, "seed": seed, "delay_all_mean_s": one["delay_mean_s"]}
        | one
        | changes.get(name.replace(" ", "_").replace(",", ""), {})
        for name, one in figures.items()
        for share in (10, 50)
        for seed in (101, 102)
    ]


def test_the_published_order_and_a_better_adaptive_hold() -> None:
    found = holding(gotin_table1.checks(table1_rows()))
    assert all(found.values())
    assert {"delay_order", "processed_order", "adaptive_vs_oracle[10]", "adaptive_delay_max_s[50]"} <= set(found)


@pytest.mark.parametrize(
    ("changes", "fails"),
    [
        ({"baseline": {"delay_mean_s": 30.0}}, {"delay_order"}),
        ({"coupled": {"processed": 5400.0}}, {"processed_order"}),
        ({"adaptive": {"processed": 5700.0}}, {"adaptive_vs_oracle[10]", "adaptive_vs_oracle[50]"}),
        ({"adaptive": {"delay_all_mean_s": 0.6}}, {"adaptive_delay_s[10]", "adaptive_delay_s[50]"}),
        ({"adaptive": {"delay_max_s": 3.1}}, {"adaptive_delay_max_s[10]", "adaptive_delay_max_s[50]"}),
        ({"adaptive_coupled": {"nodes_mean": 3.9}}, {"coupled_instances_vs_state_aware"}),
        ({"adaptive_coupled": {"processed": 5499.1}}, {"coupled_processed_vs_state_aware"}),
    ],
)
def test_table_1_fails_where_it_should(changes: dict[str, dict[str, float]], fails: set[str]) -> None:
    found = holding(gotin_table1.checks(table1_rows(**changes)))
    assert {name for name, holds in found.items() if not holds} == fails


def test_who_are_equal_are_in_no_order() -> None:
    delay_s = {"delay_mean_s": 10.0}
    alike = {name.replace(" ", "_"): delay_s for name in gotin_table1.DELAY_ORDER}
    assert holding(gotin_table1.checks(table1_rows(**alike)))["delay_order"] is False


def test_the_longest_delay_of_any_seed_counts() -> None:
    rows = table1_rows()
    next(row for row in rows if row["strategy"] == gotin_runs.ADAPTIVE and row["share_percent"] == 50)[
        "delay_max_s"
    ] = 9
    assert [one.name for one in adaptive_checks(rows) if not one.holds] == ["adaptive_delay_max_s[50]"]


def test_table_1_has_ours_beside_the_published() -> None:
    rows = table1_rows()
    for row in rows:
        row["processed"] += row["share_percent"] + row["seed"]
    found = {row["strategy"]: row for row in gotin_table1.summary(rows)}
    baseline = found["baseline"]
    assert baseline["processed"] == pytest.approx(6453.6 + 30 + 101.5)
    assert baseline["processed_ci95"] == pytest.approx(12.71 * 0.5, abs=1e-3)  # of the seeds, not of the shares
    assert baseline["processed_published"] == 6453.6
    assert "processed_published" not in found[gotin_runs.ADAPTIVE]


def test_figure_5_has_a_row_per_share_and_strategy() -> None:
    found = gotin_fig5.per_share(table1_rows())
    places = [(row["share_percent"], row["strategy"]) for row in found]
    assert len(places) == len(set(places)) == 2 * 8
    assert all(row["seeds"] == 2 for row in found)


def hard_table(**changes: dict[str, float]) -> list[ReportRow]:
    """Two scenarios: nobody has more processed at less delay than adaptive, and the oracle may."""
    figures = {
        "none": {"processed": 1000.0, "delay_all_mean_s": 20.0},
        "gotin": {"processed": 900.0, "delay_all_mean_s": 0.5},
        "adaptive": {"processed": 960.0, "delay_all_mean_s": 0.3},
        "credits": {"processed": 800.0, "delay_all_mean_s": 0.1},
        "oracle": {"processed": 970.0, "delay_all_mean_s": 0.2},
    }
    return [
        {"scenario": scenario, "strategy": name} | one | (changes.get(name, {}) if scenario == "late" else {})
        for scenario in ("late", "halved")
        for name, one in figures.items()
    ]


def recovered(took_s: float) -> ReportRow:
    return {"surge": "surge", "noise": 0.0, "seed": 101, "recovered_after_s": took_s, "allowed_s": 12.0}


@pytest.mark.parametrize(
    ("changes", "fails"),
    [
        ({}, set()),
        ({"adaptive": {"processed": 901.0}}, {"hard_vs_oracle[late]"}),
        ({"credits": {"processed": 961.0}}, {"hard_not_dominated[late]"}),
        ({"credits": {"processed": 960.0}}, {"hard_not_dominated[late]"}),
        ({"none": {"delay_all_mean_s": 0.3}}, {"hard_not_dominated[late]"}),
        ({"credits": {"processed": 960.0, "delay_all_mean_s": 0.3}}, set()),
        ({"gotin": {"processed": 960.0}}, set()),
    ],
    ids=["none", "below the oracle", "dominated", "as many, sooner", "more, as soon", "equal", "beaten in half"],
)
def test_what_is_harder_fails_where_it_should(changes: dict[str, dict[str, float]], fails: set[str]) -> None:
    found = holding(gotin_hard.checks(hard_table(**changes), [recovered(12.0)]))
    assert {name for name, holds in found.items() if not holds} == fails


def test_who_dominates_is_named() -> None:
    checks = gotin_hard.checks(hard_table(credits={"processed": 961.0}), [])
    assert [one.value for one in checks if one.name == "hard_not_dominated[late]"] == ["credits"]


def test_gotin_has_to_be_beaten_in_half_of_the_scenarios() -> None:
    table = [row | ({"processed": 990.0} if row["strategy"] == "gotin" else {}) for row in hard_table()]
    assert not holding(gotin_hard.checks(table, []))["hard_beats_gotin"]


def test_a_late_recovery_of_one_seed_fails() -> None:
    rows = [recovered(3.0), recovered(12.1) | {"seed": 102}]
    assert holding(gotin_hard.checks(hard_table(), rows))["surge_recovery_ok[surge]"] is False


def surged(delays_s: dict[float, float]) -> ReportRow:
    seconds = [float(second) for second in range(1, 161)]
    ages_s = [delays_s.get(second, 0.1) for second in seconds]
    series = {"at_s": seconds, "delay_s": ages_s, "head_age_s": [9.0] * 160, "departures": [1] * 160}
    row: dict[str, Any] = {"scenario": "surge", "seed": 101, "interval_max_s": 1.5, "delay_max_s": 4.0}
    return row | {"series": series}


def test_a_second_in_which_nothing_is_served_is_as_old_as_what_waits() -> None:
    row = surged({})
    row["series"]["departures"][109] = 0
    assert gotin_hard.recovery(row, hard_cases.surge(0.0, 0.0))["recovered_after_s"] == 10.0


@pytest.mark.parametrize(
    ("delays_s", "took_s"),
    [
        pytest.param({}, 0.0, id="never late"),
        pytest.param({50.0: 9.0, 100.0: 9.0}, 0.0, id="late before the surge"),
        pytest.param({101.0: 2.0, 104.0: 0.5, 105.0: 0.49}, 4.0, id="until it is fresh"),
        pytest.param({101.0: 2.0, 130.0: 0.7}, 30.0, id="and stays so"),
        pytest.param({160.0: 0.7}, 60.0, id="never again"),
    ],
)
def test_a_recovery_ends_when_data_is_fresh_and_stays_so(delays_s: dict[float, float], took_s: float) -> None:
    found = gotin_hard.recovery(surged(delays_s), hard_cases.surge(5.0, 0.2))
    assert found["recovered_after_s"] == took_s
    assert found["allowed_s"] == pytest.approx(5.0 + 1.5 + 3 * gotin_case.PERIOD_S)
