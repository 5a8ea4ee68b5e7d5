"""``tidegate simulate``: tables, JSON, plots and a page."""

import json
import re
from pathlib import Path

import pytest
import typer

from tidegate.cli import simulate
from tidegate.model.errors import UserError

SCENARIO = """
name: small flood
seconds: 30
classes:
  - {name: alarm, pattern: "0:1", never_delay: true}
  - {name: telemetry, pattern: "0:2,10:2,12:12"}
service: {rate_per_s: 8, nodes_max: 3, start_s: 2}
strategies:
  - policy: none
  - {policy: gotin, name: published}
  - {policy: coupled, name: scaled, options: {policy: none, mode: independent}}
"""


@pytest.fixture
def scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("flood.yaml").write_text(SCENARIO, encoding="utf-8")
    return "flood.yaml"


def run(*arguments: str) -> None:
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(simulate.run)
    app(list(arguments), standalone_mode=False)


def test_a_row_per_strategy_and_one_per_class(scenario: str, capfd: pytest.CaptureFixture[str]) -> None:
    run(scenario)
    printed, told = capfd.readouterr()
    assert printed.startswith("small flood: 30 s of virtual time, seed 1. Up to 13 devices would send ")
    names = [line.split()[0] for line in printed.splitlines() if "│" in line]
    assert names == ["none", "published", "scaled", *("none", "none", "published", "published", "scaled", "scaled")]
    assert "simulate small flood: published" in told


def test_json_has_every_figure_and_the_seed(scenario: str, capfd: pytest.CaptureFixture[str]) -> None:
    run(scenario, "--json", "--seed", "7")
    report = json.loads(capfd.readouterr().out)
    assert (report["name"], report["checks"]) == ("simulate", [])
    assert [(row["strategy"], row["seed"]) for row in report["rows"]] == [("none", 7), ("published", 7), ("scaled", 7)]
    assert set(report["rows"][0]["classes"]) == {"alarm", "telemetry"}
    assert all(row["sent"] == row["processed"] + row["waiting_end"] for row in report["rows"])


def test_policies_replace_the_strategies_of_the_file(scenario: str, capfd: pytest.CaptureFixture[str]) -> None:
    run(scenario, "--json", "--policy", "published", "--policy", "oracle")
    rows = json.loads(capfd.readouterr().out)["rows"]
    assert [(row["strategy"], row["policy"]) for row in rows] == [("published", "gotin"), ("oracle", "oracle")]


def test_a_policy_of_ones_own_lies_in_the_current_directory(scenario: str, capfd: pytest.CaptureFixture[str]) -> None:
    Path("mine_here.py").write_text(
        "from tidegate.control.send_rate.none import NoState, NoProtection\n"
        "class Mine(NoProtection):\n    def __init__(self): pass\n",
        encoding="utf-8",
    )
    run(scenario, "--json", "--policy", "mine_here:Mine")
    assert [row["policy"] for row in json.loads(capfd.readouterr().out)["rows"]] == ["mine_here:Mine"]


def test_out_keeps_plots_a_page_and_all_series(scenario: str, capfd: pytest.CaptureFixture[str]) -> None:
    run(scenario, "--out", "found/here", "--seed", "3")
    out = Path("found/here")
    assert (out / "small flood.png").read_bytes().startswith(b"\x89PNG")
    results = json.loads((out / "small flood.json").read_text())
    assert [len(result["series"]["arrivals"]) for result in results] == [30, 30, 30]
    page = (out / "small flood.html").read_text(encoding="utf-8")
    assert "<code>tidegate simulate flood.yaml --seed 3</code>" in page
    assert page.count("<svg") == 1
    assert ">published</text>" in page
    assert "var(--tide)" in page
    # Nothing is fetched: addresses are names of XML namespaces alone.
    assert not re.search(r"<script|<link|@import|@font-face|src=|url\((?!#)", page)
    assert {address.split("/")[2] for address in re.findall(r"https?://[^\s\"'<>]+", page)} <= {"www.w3.org"}
    assert "Plots and all results are in found/here." in capfd.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["none.yaml"], "none.yaml does not exist"),
        (["flood.yaml", "--policy", "gotn"], "There is no policy 'gotn'"),
        (["flood.yaml", "--policy", "not_installed:Mine"], "the module 'not_installed' cannot be imported"),
        (["broken.yaml"], "Strategy gotin: overload names wating, which is no property: did you mean waiting?"),
        (["flood.yaml", "--out", "flood.yaml"], "--out flood.yaml cannot be made"),
    ],
)
@pytest.mark.usefixtures("scenario")
def test_bad_input_is_one_sentence_before_anything_runs(
    arguments: list[str], sentence: str, capfd: pytest.CaptureFixture[str]
) -> None:
    last = "  - {policy: gotin, overload: wating > 3}\n"
    Path("broken.yaml").write_text(SCENARIO + last, encoding="utf-8")
    with pytest.raises(UserError) as caught:
        run(*arguments)
    assert sentence in str(caught.value)
    assert capfd.readouterr() == ("", "")


def test_the_same_command_gives_the_same_files(scenario: str) -> None:
    for name in ("first", "again"):
        run(scenario, "--policy", "none", "--policy", "gotin", "--out", name)
    for suffix in ("png", "html", "json"):
        assert Path(f"first/small flood.{suffix}").read_bytes() == Path(f"again/small flood.{suffix}").read_bytes()
