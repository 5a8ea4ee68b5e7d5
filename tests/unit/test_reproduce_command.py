"""``tidegate reproduce``: refusals, the JSON contract, and what people are shown.

Experiments take minutes, so here all their runs are kept already: what is left is everything but the simulation.
"""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tidegate.cli import main, reproduce
from tidegate.experiments import gotin_case, gotin_runs, tuning
from tidegate.experiments.running import KEPT_FILE, Job
from tidegate.report.checks import Check, Report
from tidegate.sim.scenario import Strategy


def keep(out: Path, rows: list[tuple[Job, dict[str, Any]]]) -> None:
    """Runs as an earlier try would have left them."""
    out.mkdir()
    with (out / KEPT_FILE).open("wb") as file:
        for job, figures in rows:
            names = {"scenario": job.scenario.name, "strategy": job.strategy.title, "policy": job.strategy.policy}
            row = names | {"seed": job.seed} | figures
            file.write(msgspec.json.encode({"run": job.name, "row": row}) + b"\n")


# -- refusals and help


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nonesuch"], "There is no experiment 'nonesuch': choose one of gotin-table1, gotin-fig5, gotin-hard, "),
        (["gotin-table1", "--seeds", "3"], "Try 'tidegate reproduce --help'."),
        ([], "Missing argument"),
    ],
)
def test_bad_input_is_one_sentence(
    arguments: list[str], says: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main.run(["reproduce", *arguments, "--out", str(tmp_path / "new")]) == main.EXIT_BAD_INPUT
    printed, told = capfd.readouterr()
    assert printed == ""
    assert says in told
    assert told.count("\n") == 1
    assert not (tmp_path / "new").exists()


def test_a_place_that_is_no_directory_is_refused_with_a_sentence(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("mine")
    assert main.run(["reproduce", "gotin-tuning", "--quick", "--out", str(tmp_path / "file")]) == main.EXIT_BAD_INPUT
    assert f"--out {tmp_path / 'file'} cannot be made" in capfd.readouterr().err


def test_help_names_every_experiment_and_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["reproduce", "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    for name in (*reproduce.EXPERIMENTS, reproduce.ALL):
        assert name in shown
    assert "tidegate reproduce gotin-table1 --quick" in shown
    assert "--json" in shown


@pytest.mark.parametrize("name", reproduce.EXPERIMENTS)
def test_every_experiment_can_be_found(name: str) -> None:
    assert callable(reproduce.find(name))


# -- a whole command


def tuning_runs(*, best: tuple[str, int]) -> list[tuple[Job, dict[str, Any]]]:
    """Every draw has nine tenths of the oracle's messages; one policy's draw has them all."""
    strategies = {"oracle": Strategy(policy="oracle")}
    for policy in tuning.RANGES:
        for number, options in enumerate(tuning.draws(policy, 3)):
            strategies[f"{policy} {number}"] = tuning.strategy(policy, options, f"{policy} {number}")
    found = []
    for name, strategy in strategies.items():
        processed = 1000.0 if name in ("oracle", f"{best[0]} {best[1]}") else 900.0
        for seed in gotin_case.TRAINING_SEEDS:
            job = Job(scenario=tuning.training_scenarios()[0], strategy=strategy, seed=seed)
            found.append((job, {"processed": processed, "delay_all_mean_s": 0.5}))
    return found


def test_tuning_is_one_json_object_and_a_file_in_the_form_that_is_read(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "found"
    keep(out, tuning_runs(best=("credits", 2)))
    assert main.run(["reproduce", "gotin-tuning", "--quick", "--json", "--out", str(out)]) == 0
    printed, told = capfd.readouterr()
    assert printed.count("\n") == 1
    assert "reproduce gotin-tuning: 38 training runs" in told
    report = json.loads(printed)
    assert set(report) == {"name", "rows", "checks", "seconds"}
    assert (report["name"], report["checks"]) == ("gotin-tuning", [])
    best = {row["best"]: row for row in report["rows"] if "best" in row}
    assert {name: row["score"] for name, row in best.items()} == {
        name: 0.95 if name == "credits" else 0.85 for name in tuning.RANGES
    }
    assert best["credits"]["options"] == tuning.draws("credits", 3)[2]
    assert best["gotin"]["options"] == {}
    assert best["credits"]["score_of_defaults"] == 0.85
    written = msgspec.json.decode((out / tuning.TUNED_FILE).read_bytes(), type=dict[str, tuning.Tuned])
    assert list(written) == list(tuning.tuned())
    assert msgspec.to_builtins(written["credits"]).items() <= best["credits"].items()


def table1_runs() -> list[tuple[Job, dict[str, Any]]]:
    """The baseline is the worst of all, in delay and in messages; the others are alike."""
    figures = dict.fromkeys((*gotin_runs.FIGURES, "delay_all_mean_s", "age_mean_s"), 0.4)
    figures |= dict.fromkeys(("generated", "sent", "readings", "decisions"), 10)
    worst = figures | {"delay_mean_s": 0.5, "processed": 0.3}
    return [
        (
            Job(scenario=gotin_case.scenario(share), strategy=strategy, seed=seed),
            worst if strategy.name == "baseline" else figures,
        )
        for share in gotin_case.NODES_MAX
        for strategy in gotin_runs.strategies(share)
        for seed in gotin_case.HELD_OUT_SEEDS[: gotin_runs.QUICK_SEEDS]
    ]


def test_a_check_that_fails_is_status_1_and_plots_are_drawn_all_the_same(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "found"
    runs = table1_runs()
    keep(out, runs)
    assert main.run(["reproduce", "gotin-table1", "--quick", "--json", "--out", str(out)]) == 1
    report = json.loads(capfd.readouterr().out)
    assert all(set(check) == {"name", "value", "bar", "holds"} for check in report["checks"])
    failed = [check["name"] for check in report["checks"] if not check["holds"]]
    assert failed == ["delay_order", "processed_order", "coupled_processed_vs_state_aware"]
    # Everything from which the checks can be recomputed.
    assert sum("seed" in row for row in report["rows"]) == len(runs)
    assert (out / "gotin-table1.png").read_bytes().startswith(b"\x89PNG")
    page = (out / "gotin-table1.html").read_text(encoding="utf-8")
    assert "tidegate reproduce gotin-table1" in page
    assert "2 held-out seeds" in page


# -- what people are shown


def test_a_cell_has_the_value_its_spread_and_the_published_one() -> None:
    row = {
        "strategy": "baseline",
        "processed": 6038.4,
        "processed_ci95": 57.0,
        "processed_published": 5855.0,
        "delay_mean_s": 0.51234,
        "delay_mean_s_ci95": 0.0312,
        "seeds": 10,
    }
    assert reproduce._merged(row) == {
        "strategy": "baseline",
        "processed": "6,038 ± 57 (5,855)",
        "delay_mean_s": "0.512 ± 0.0312",
        "seeds": "10",
    }


def test_single_runs_are_not_shown_and_neither_is_the_hundredth_row() -> None:
    rows = [{"strategy": "a", "seed": 101, "processed": 1}, *({"strategy": f"s{n}", "seeds": 2} for n in range(100))]
    checks = [Check.at_most("delay", 9.0, 5.0)]
    shown = reproduce._shortened(Report("x", rows, checks, 1.5))
    assert [row["strategy"] for row in shown.rows] == [f"s{n}" for n in range(reproduce.ROWS_SHOWN)]
    assert (shown.name, shown.checks, shown.seconds) == ("x", checks, 1.5)


def test_together_every_check_and_row_says_whose_it_is() -> None:
    holds, fails = Check.at_most("delay", 1.0, 5.0), Check.equal("order", "b > a", "a > b")
    found = reproduce._together([Report("one", [{"n": 1}], [holds], 1.25), Report("two", [{"n": 2}], [fails], 2.5)])
    assert found.rows == [{"experiment": "one", "n": 1}, {"experiment": "two", "n": 2}]
    assert [(check.name, check.holds) for check in found.checks] == [("one: delay", True), ("two: order", False)]
    assert [check.bar for check in found.checks] == [holds.bar, fails.bar]
    assert found.exit_status == 1
    assert found.seconds == pytest.approx(3.75, abs=0.06)
    assert reproduce._together([Report("one", [], [holds], 1.0)] * 2).exit_status == 0
