"""The command line: exit statuses, one line for an error, one JSON object on standard output."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tidegate import __version__
from tidegate.bus.installation import save_installation
from tidegate.cli import bench, main
from tidegate.devices.acknowledgements import SUFFIX, AckFile
from tidegate.model.errors import BrokerUnavailableError
from tidegate.model.installation import Installation
from tidegate.report.checks import Check, Report
from tidegate.report.progress import Progress


def holding(progress: Progress, out: Path | None) -> Report:
    progress.step("working")
    print("noise of the benchmark")  # noqa: T201
    os.system("echo noise of a child")
    if out is not None:
        (out / "trace.txt").write_text("kept")
    return Report("holding", [{"policy": "ours[1]", "rate": 1234.5}], [Check.at_least("ratio", 2.0, 1.5)], 0.1)


def failing(progress: Progress, out: Path | None) -> Report:
    return Report("failing", [], [Check.at_most("age_s[p99]", 9.0, 5.0), Check.equal("lost", 0, 0)], 0.1)


def unavailable(progress: Progress, out: Path | None) -> Report:
    raise BrokerUnavailableError("No broker answers at\nlocalhost: start one.")


def interrupted(progress: Progress, out: Path | None) -> Report:
    raise KeyboardInterrupt


def drawing(progress: Progress, out: Path | None, *, rounds: int = 3) -> Report:
    return Report("drawing", [{"rounds": rounds}], [], 0.1)


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    for function in (holding, failing, unavailable, interrupted, drawing):
        monkeypatch.setitem(bench.BENCHMARKS, function.__name__, f"{__name__}:{function.__name__}")


def test_json_is_the_only_thing_on_standard_output(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main.run(["bench", "holding", "--json", "--out", str(tmp_path / "new")]) == 0
    captured = capfd.readouterr()
    assert json.loads(captured.out) == {
        "name": "holding",
        "rows": [{"policy": "ours[1]", "rate": 1234.5}],
        "checks": [{"name": "ratio", "value": 2.0, "bar": ">= 1.5", "holds": True}],
        "seconds": 0.1,
    }
    assert captured.out.count("\n") == 1
    assert "noise of the benchmark" in captured.err
    assert "noise of a child" in captured.err
    assert "bench holding: working" in captured.err
    assert (tmp_path / "new" / "trace.txt").exists()


@pytest.mark.parametrize(("given", "rounds"), [([], 3), (["--rounds", "7"], 7)])
def test_options_reach_a_benchmark_that_takes_them(
    given: list[str], rounds: int, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main.run(["bench", "drawing", "--json", *given]) == 0
    assert json.loads(capfd.readouterr().out)["rows"] == [{"rounds": rounds}]


def test_a_failed_check_is_status_1_and_named(capfd: pytest.CaptureFixture[str]) -> None:
    assert main.run(["bench", "failing"]) == 1
    output = capfd.readouterr().out
    assert output.startswith("failing: 1 of 2 checks fail: age_s[p99], 0.1 s.")
    assert "<= 5" in output
    assert "\x1b" not in output


def test_a_table_shows_brackets_as_they_are(capfd: pytest.CaptureFixture[str]) -> None:
    assert main.run(["bench", "holding"]) == 0
    output = capfd.readouterr().out
    assert "ours[1]" in output
    assert "1,234" in output


@pytest.mark.parametrize(
    ("arguments", "status", "sentence"),
    [
        (["bench", "unavailable"], 1, "tidegate: No broker answers at localhost: start one."),
        (["bench", "interrupted"], 130, ""),
        (["bench", "nonesuch"], 2, "Unknown benchmark 'nonesuch': choose one of audit, calm, "),
        (["bench"], 2, "Missing argument"),
        (["bench", "holding", "--rounds", "3"], 2, "Benchmark holding takes no --rounds: leave it out."),
        (["bench", "drawing", "--seed", "3"], 2, "Benchmark drawing takes no --seed: it takes --rounds."),
        (["bench", "holding", "--jsn"], 2, "Try 'tidegate bench --help'."),
        (["nonesuch"], 2, "No such command 'nonesuch'. Try 'tidegate --help'."),
        (["ledger", "check", "--acks", "/nonesuch"], 2, "No directory /nonesuch"),
    ],
)
def test_errors_are_one_line(
    arguments: list[str], status: int, sentence: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main.run(arguments) == status
    captured = capfd.readouterr()
    assert captured.out == ""
    assert sentence in captured.err
    assert captured.err.count("\n") <= 1


@pytest.mark.parametrize("command", [[], ["bench"], ["ledger"], ["ledger", "check"]])
def test_every_command_has_help_with_an_example(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run([*command, "--help"]) == 0
    output = capsys.readouterr().out
    assert "Example" in output
    assert "\n    tidegate " in output
    assert "\x1b" not in output


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["--version"]) == 0
    assert capsys.readouterr().out == f"tidegate {__version__}\n"


def test_a_reader_that_went_away_is_no_traceback() -> None:
    command = [sys.executable, "-m", "tidegate.cli.main", "--help"]
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as pipe:
        ended = subprocess.run(command, stdout=pipe, stderr=subprocess.PIPE, check=False)
    assert ended.stderr == b""
    assert ended.returncode == main.EXIT_FAILED


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """An installation whose table holds what was acknowledged, and one reading more."""
    tables = tmp_path / "tables"
    installation = Installation(
        control_urls=(), data_urls=(), mqtt_addresses=(), monitor_urls=(), mqtt_user="", mqtt_password="",
        slices=1, tables=str(tables),
    )  # fmt: skip
    save_installation(installation, tmp_path)
    with AckFile(tmp_path / "acks" / f"a{SUFFIX}") as file:
        file.append("d", 0, 0)
    identities = pa.table({"device": ["d", "d"], "boot": pa.array([0, 0]), "seq": pa.array([0, 1])})
    write_deltalake(str(tables / "readings"), identities)
    return tmp_path


def test_a_clean_ledger(state: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main.run(["ledger", "check", "--state", str(state), "--json"]) == 0
    report = json.loads(capfd.readouterr().out)
    assert report["rows"][0]["acknowledged"] == 1
    assert report["rows"][0]["unacknowledged_stored"] == 1
    assert [(each["name"], each["holds"]) for each in report["checks"]] == [
        ("lost", True),
        ("duplicated", True),
    ]


def test_a_loss_is_status_1_with_the_identity(state: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with AckFile(state / "acks" / f"b{SUFFIX}") as file:
        file.append("pump", 4, 17)
    assert main.run(["ledger", "check", "--state", str(state), "--json"]) == 1
    report = json.loads(capfd.readouterr().out)
    assert report["rows"][0]["lost_examples"] == [{"device": "pump", "boot": 4, "seq": 17}]
    assert main.run(["ledger", "check", "--state", str(state)]) == 1
    assert "1 of 2 checks fail: lost" in capfd.readouterr().out
