"""Where ``tidegate bench`` finds the benchmarks: beside the package in a checkout, or installed, and nowhere else."""

import ast
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest
from setuptools import find_packages

from tidegate.cli import bench, main

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", sorted(bench.BENCHMARKS))
def test_every_registered_benchmark_is_there(name: str) -> None:
    module, _, function = bench.BENCHMARKS[name].partition(":")
    spec = importlib.util.find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    defined = [node for node in ast.parse(Path(spec.origin).read_text()).body if isinstance(node, ast.FunctionDef)]
    arguments = next([each.arg for each in node.args.args] for node in defined if node.name == function)
    assert arguments == ["progress", "out"]


def in_checkout(code: str, directory: Path) -> str:
    """What the code prints where only the package itself is on Python's path."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, env=environment, cwd=directory, capture_output=True, text=True, check=True
    ).stdout.strip()


def test_a_checkout_has_them_beside_the_package(tmp_path: Path) -> None:
    code = "from tidegate.cli import bench; print(bench.find('send-rate-scale').__module__)"
    assert in_checkout(code, tmp_path) == "tidegate_bench.send_rate_scale"


def test_processes_that_a_benchmark_starts_find_them_too(tmp_path: Path) -> None:
    child = "import tidegate_bench.rig.steady_load as load; print(load.__name__)"
    code = (
        "import subprocess, sys; from tidegate.cli import bench; bench.find('send-rate-scale'); "
        f"print(subprocess.run([sys.executable, '-c', {child!r}], capture_output=True, text=True).stdout)"
    )
    assert in_checkout(code, tmp_path) == "tidegate_bench.rig.steady_load"


def test_where_they_are_not_is_one_sentence_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench, "CHECKOUT", tmp_path / "benchmarks")
    monkeypatch.setattr(bench, "PACKAGE", "tidegate_bench_that_is_not_installed")
    assert main.run(["bench", "storm"]) == 2
    captured = capfd.readouterr()
    assert captured.out == ""
    assert captured.err.strip() == (
        "tidegate: The benchmarks are not installed: run this command in a checkout, or install them with "
        "'pip install tidegate[bench]'."
    )


def test_the_package_is_built_without_them() -> None:
    assert {name.partition(".")[0] for name in find_packages(str(ROOT / "src"))} == {"tidegate"}
    built = find_packages(str(ROOT / "benchmarks"), include=["tidegate_bench*"])
    assert {"tidegate_bench", "tidegate_bench.rig", "tidegate_bench.interop"} <= set(built)
