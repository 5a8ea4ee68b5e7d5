"""YAML whose every key knows its line and column, so that a mistake is found where it stands."""

import re
from typing import Any

import yaml

from tidegate.model.errors import UserError
from tidegate.settings.reading import Path

LENGTH_MAX = 1_000_000
NUMBER_MAX = 1e15
DEPTH_MAX = 50  # far below where Python gives up, which is not the same everywhere


_BOOL = "tag:yaml.org,2002:bool"
_MERGE = "tag:yaml.org,2002:merge"


class _Loader(yaml.SafeLoader):  # type: ignore[misc]  # it has no types
    """Only true and false are truth values, as in YAML 1.2: the key ``on`` is a word."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - a copy of the loader's own
        first: [(tag, pattern) for tag, pattern in several if tag != _BOOL]
        for first, several in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """A value and all that stands in it."""
        if self._depth > DEPTH_MAX:
            raise yaml.composer.ComposerError(problem="nested too deeply", problem_mark=self.peek_event().start_mark)
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node


_Loader.add_implicit_resolver(_BOOL, re.compile(r"^(?:true|True|false|False)$"), list("tTfF"))


class Located:
    """A document: its plain values, and where each of them stands. ``name`` is what people call it."""

    def __init__(self, text: str, name: str) -> None:
        self._name = name
        self._marks: dict[Path, yaml.Mark] = {}
        self._seen: set[int] = set()
        if len(text) > LENGTH_MAX:
            raise UserError(f"{name} is longer than {LENGTH_MAX:,} characters: shorten it.")
        self.values: Any = None
        try:
            self._loader = _Loader(text)
            root = self._loader.get_single_node()
            if root is not None:
                self._mark(root, ())
                self.values = self._loader.construct_document(root)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            raise UserError(f"{self._said(mark)}: {error.problem}: correct that place.") from None
        except yaml.reader.ReaderError as error:
            line, column = text.count("\n", 0, error.position), error.position - text.rfind("\n", 0, error.position) - 1
            here = yaml.Mark(name, error.position, line, column, None, None)
            raise UserError(f"{self._said(here)}: a character that may not stand in YAML: remove it.") from None
        except (yaml.YAMLError, ValueError) as error:
            raise UserError(f"{name} is not YAML ({' '.join(str(error).split())}): correct it.") from None

    def place(self, path: Path) -> str:
        """Where that stands, or what it would stand in. A key may have a dot in it."""
        while path and path not in self._marks:
            joined = (*path[:-2], ".".join(path[-2:]))
            path = joined if joined in self._marks else path[:-1]
        return self._said(self._marks.get(path))

    def _said(self, mark: yaml.Mark | None) -> str:
        return self._name if mark is None else f"{self._name}, line {mark.line + 1}, column {mark.column + 1}"

    def _mark(self, node: yaml.Node, path: Path) -> None:
        """A key that stands there twice is refused: the parser would keep the last one and say nothing. So is what is
        meant twice by an alias: a few of them make a document without end."""
        if id(node) in self._seen:
            raise UserError(f"{self._said(node.start_mark)}: aliases are not taken: write it out.")
        if not isinstance(node, yaml.ScalarNode):
            self._seen.add(id(node))
        self._marks.setdefault(path, node.start_mark)
        match node:
            case yaml.MappingNode():
                for key, value in node.value:
                    here = (*path, self._key(key))
                    if here in self._marks:
                        raise UserError(
                            f"{self._said(key.start_mark)}: {key.value} stands there for the second time: leave one."
                        )
                    self._marks[here] = key.start_mark
                    self._mark(value, here)
            case yaml.ScalarNode():
                self._check(node)
            case yaml.SequenceNode():
                for number, item in enumerate(node.value):
                    here = (*path, f"[{number}]")
                    self._marks[here] = item.start_mark
                    self._mark(item, here)

    def _key(self, node: yaml.Node) -> str:
        """A word or a number, however it is written."""
        scalar = isinstance(node, yaml.ScalarNode) and node.tag != _MERGE
        key = self._value(node) if scalar else None
        if not isinstance(key, str | int) or isinstance(key, bool):
            raise UserError(f"{self._said(node.start_mark)}: a key is a word or a whole number: write one.")
        self._check(node)
        return str(key)

    def _check(self, node: yaml.ScalarNode) -> None:
        """Values that could not be written down again."""
        value = self._value(node)
        if isinstance(value, int | float) and not abs(value) <= NUMBER_MAX:
            raise UserError(f"{self._said(node.start_mark)}: {node.value[:40]} cannot be used as a number: change it.")
        if isinstance(value, str) and any("\ud800" <= one <= "\udfff" for one in value):
            raise UserError(f"{self._said(node.start_mark)}: text with half a character: write the whole one.")

    def _value(self, node: yaml.ScalarNode) -> Any:
        try:
            return self._loader.construct_object(node)
        except (ValueError, LookupError, AttributeError):  # the parser's own, of a word that is not what its tag says
            raise UserError(f"{self._said(node.start_mark)}: {node.value[:40]!r} cannot be read: change it.") from None
