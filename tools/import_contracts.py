"""Two kinds of contract for import-linter: which folder may import which, and that nothing imports in a circle.

Imports for type checking count like any other: a reader has to follow them as well.
"""

from collections.abc import Iterable, Mapping

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output

Edges = dict[str, set[str]]


class Arrows(Contract):
    """Every arrow of the layout: ``gateway = model, control`` allows a folder these folders, itself, and no other."""

    type_name = "arrows"
    root = fields.StringField()
    allowed = fields.ListField(subfield=fields.StringField())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:  # noqa: ARG002 - import-linter's
        allowed = parsed(self.allowed)
        refused, unused = [], {(of, to) for of, arrows in allowed.items() for to in arrows}
        for importer, imported in sorted(edges_between(graph, graph.modules)):
            of, to = folder_below(self.root, importer), folder_below(self.root, imported)
            if to is not None and importer == self.root:
                refused.append(f"{importer} imports {imported}: arrows could hide behind the root")
            if of is None or to is None or of == to:
                continue
            unused.discard((of, to))
            if to not in allowed.get(of, set()):
                refused.append(f"{importer} imports {imported}: there is no such arrow in pyproject.toml")
        refused += [f"nothing in {of} imports {to}: take that arrow out of pyproject.toml" for of, to in sorted(unused)]
        return ContractCheck(kept=not refused, metadata={"refused": refused})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for sentence in check.metadata["refused"]:
            output.print_error(f"{sentence}.")


class NoCycles(Contract):
    """Neither modules nor folders import in a circle. ``exceptions`` names modules that may, among themselves."""

    type_name = "no_cycles"
    exceptions = fields.SetField(subfield=fields.StringField(), required=False)

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:  # noqa: ARG002 - import-linter's
        pairs = edges_between(graph, graph.modules)
        modules = gathered(pairs)
        packages = {module.rpartition(".")[0] for module in graph.modules}
        folder = {module: module if module in packages else module.rpartition(".")[0] for module in graph.modules}
        folders = gathered((folder[a], folder[b]) for a, b in pairs if folder[a] != folder[b])
        excepted = set(self.exceptions or ())
        circles = [circle for circle in circles_of(modules) if not set(circle) <= excepted]
        return ContractCheck(kept=not (found := circles + circles_of(folders)), metadata={"circles": found})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for circle in check.metadata["circles"]:
            output.print_error(f"These import each other in a circle: {', '.join(circle)}.")


def parsed(lines: Iterable[str]) -> dict[str, set[str]]:
    """``of = to, to`` for each folder."""
    halves = [line.partition("=") for line in lines]
    return {of.strip(): {name.strip() for name in to.split(",") if name.strip()} for of, _, to in halves}


def folder_below(root: str, module: str) -> str | None:
    """The folder or file right below the root that a module is in; None where that is another root's."""
    below = module.removeprefix(f"{root}.")
    return below.partition(".")[0] if below != module else None


def edges_between(graph: ImportGraph, modules: Iterable[str]) -> list[tuple[str, str]]:
    return [(module, imported) for module in modules for imported in graph.find_modules_directly_imported_by(module)]


def gathered(pairs: Iterable[tuple[str, str]]) -> Edges:
    edges: Edges = {}
    for of, to in pairs:
        edges.setdefault(of, set()).add(to)
    return edges


def circles_of(edges: Mapping[str, set[str]]) -> list[list[str]]:
    """Groups in which each reaches each other, of two members or more."""
    reached = {start: _reachable(start, edges) for start in edges}
    groups = {
        frozenset(other for other in found if start in reached.get(other, ()) and other in found) | {start}
        for start, found in reached.items()
        if start in found
    }
    return sorted(sorted(group) for group in groups)


def _reachable(start: str, edges: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        for to in edges.get(waiting.pop(), set()) - found:
            found.add(to)
            waiting.append(to)
    return found
