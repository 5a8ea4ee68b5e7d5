"""The layout: who imports whom, as data in pyproject.toml, in ARCHITECTURE.md and in the code."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from tools.import_contracts import circles_of, folder_below, parsed

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "tidegate"
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
ARROWS = parsed(next(one["allowed"] for one in CONTRACTS if one["type"] == "arrows"))
NATS = ("nats", "tidegate.bus.wire", "tidegate.bus.jetstream", "tidegate.brokers.nats")


def imported(file: Path) -> Iterator[str]:
    """Every module that a file names in an import, wherever the import stands."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def is_nats(module: str) -> bool:
    return any(module == one or module.startswith(f"{one}.") for one in NATS)


def test_nothing_but_the_bus_and_its_brokers_imports_nats() -> None:
    homes = (SOURCE / "bus", SOURCE / "brokers" / "nats")
    found = {
        str(file.relative_to(SOURCE)): sorted(set(filter(is_nats, imported(file))))
        for file in SOURCE.rglob("*.py")
        if not any(home in file.parents for home in homes) and any(map(is_nats, imported(file)))
    }
    assert found == {}
    assert any(is_nats(module) for file in homes[1].glob("*.py") for module in imported(file)), "it looks at imports"


def test_every_folder_has_its_arrows() -> None:
    assert set(ARROWS) == {folder.name for folder in SOURCE.iterdir() if (folder / "__init__.py").is_file()}
    assert set().union(*ARROWS.values()) <= set(ARROWS)


def test_the_architecture_has_the_same_arrows() -> None:
    rows = re.findall(r"^\| `(\w+)/` \|.*\| ([^|]+) \|$", (ROOT / "ARCHITECTURE.md").read_text(), re.MULTILINE)
    said = {name: {to.strip() for to in arrows.split(",")} - {"nothing of ours"} for name, arrows in rows}
    assert said == ARROWS


@pytest.mark.parametrize(
    ("edges", "circles"),
    [
        pytest.param({"a": {"b"}, "b": {"c"}}, [], id="a chain"),
        pytest.param({"a": {"b"}, "b": {"a"}}, [["a", "b"]], id="two"),
        pytest.param({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}, [["a", "b", "c"]], id="three, and a visitor"),
        pytest.param(
            {"a": {"b"}, "b": {"a", "c"}, "c": {"d"}, "d": {"c"}}, [["a", "b"], ["c", "d"]], id="two circles in a row"
        ),
    ],
)
def test_circles_are_found(edges: dict[str, set[str]], circles: list[list[str]]) -> None:
    assert circles_of(edges) == circles


def test_a_module_belongs_to_the_folder_below_the_root() -> None:
    assert folder_below("tidegate", "tidegate.gateway.shared.row") == "gateway"
    assert folder_below("tidegate", "tidegate") is None
    assert folder_below("tidegate", "tidegate_bench.rig") is None


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text()
    listed = set(re.findall(r"^\| \[[\w-]+\]\(([\w-]+\.md)\) \|", index, re.MULTILINE))
    assert listed == {page.name for page in (ROOT / "docs").glob("*.md")} - {"index.md"}
