"""From a parsed document to typed values: every mistake is one sentence with its place, what stands there and what was
expected.

A document is a tree of tables, lists and values, as TOML and YAML parsers leave it; a struct says what may stand in it.
``checked`` converts the values, ``built`` makes the structs, ``read`` does both.
"""

import difflib
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from tidegate.model.errors import UserError

Path = tuple[str, ...]
# Where a document is, or where in it a path stands.
Place = str | Callable[[Path], str]
Built = TypeVar("Built", bound=msgspec.Struct)
_SHOWN_CHARACTERS = 60


class Style(msgspec.Struct, frozen=True, kw_only=True):
    """How a kind of document is spoken of: a key by its path, what an unknown one is called, what a table is."""

    name: Callable[[Path], str]
    key_word: Callable[[Path], str]
    table_word: Callable[[Path], str]


def _dotted(path: Path) -> str:
    """classes, [0], cost: ``classes[0].cost``."""
    return "".join(part if part.startswith("[") else f".{part}" for part in path).removeprefix(".")


TOML = Style(
    name=lambda path: f"[{_dotted(path[:-1])}] {path[-1]}" if path[1:] else f"[{path[0]}]",
    key_word=lambda path: "setting" if path[1:] else "section",
    table_word=lambda path: f"a section [{_dotted(path)}]",
)
YAML = Style(name=_dotted, key_word=lambda _: "key", table_word=lambda _: "keys with values")


def read(table: Mapping[str, Any], struct: type[Built], place: Place, style: Style) -> Built:
    """The struct that the table describes."""
    return built(checked(table, struct, place, style), struct, place, style)


def checked(
    table: Mapping[str, Any], struct: type[msgspec.Struct], place: Place, style: Style, path: Path = ()
) -> dict[str, Any]:
    """The same table with every value converted."""
    fields = {field.encode_name: field for field in msgspec.structs.fields(struct)}
    found: dict[str, Any] = {}
    for key, value in table.items():
        if key not in fields:
            raise UserError(f"{_at(place, (*path, str(key)))}: {unknown(str(key), fields, style, path)}")
        found[key] = checked_value(value, fields[key].type, place, style, (*path, key))
    missing = next((field for field in fields.values() if field.required and field.encode_name not in found), None)
    if missing is not None:
        name, wanted = style.name((*path, missing.encode_name)), expected(missing.type)
        raise UserError(f"{_at(place, path)}: {name} is missing: expected {wanted}.")
    return found


def checked_value(value: Any, kind: Any, place: Place, style: Style, path: Path) -> Any:
    """One value of a table, converted; tables within it stay tables."""
    struct, items = struct_of(kind), _item_struct(kind)
    if struct is not None and not (value is None and _may_be_none(kind)):
        if not isinstance(value, dict):
            wanted = f"expected {style.table_word(path)}"
            raise UserError(f"{_at(place, path)}: {_last(path)} is {show(value)}: {wanted}.")
        return checked(value, struct, place, style, path)
    if items is not None and isinstance(value, list):
        return [checked_value(one, items, place, style, (*path, f"[{n}]")) for n, one in enumerate(value)]
    named = _named_struct(kind)
    if named is not None and isinstance(value, dict):
        keys = [_key(key, kind, f"{_at(place, (*path, str(key)))}: {style.name(path)}") for key in value]
        each = zip(keys, value.values(), strict=True)
        return {key: checked_value(one, named, place, style, (*path, key)) for key, one in each}
    return convert(value, kind, f"{_at(place, path)}: {style.name(path)}")


def built(tree: Mapping[str, Any], struct: type[Built], place: Place, style: Style, path: Path = ()) -> Built:
    """The values themselves, from the leaves up; a contradiction between them is named with its place."""
    values: dict[str, Any] = {}
    for field in msgspec.structs.fields(struct):
        if field.encode_name in tree:
            here = (*path, field.encode_name)
            values[field.name] = _built_value(tree[field.encode_name], field.type, place, style, here)
    try:
        return struct(**values)
    except UserError as error:
        raise UserError(f"{_at(place, (*path, *parts(error.where)))}: {error}") from None
    except (TypeError, ValueError) as error:
        where = f"{style.name(path)} " if path else ""
        raise UserError(f"{_at(place, path)}: {where}{str(error).rstrip('.')}.") from None


def _built_value(value: Any, kind: Any, place: Place, style: Style, path: Path) -> Any:
    struct, items = struct_of(kind), _item_struct(kind)
    if struct is not None and isinstance(value, dict):
        return built(value, struct, place, style, path)
    named = _named_struct(kind)
    if named is not None:
        return {key: built(one, named, place, style, (*path, key)) for key, one in value.items()}
    if items is not None:
        return tuple(built(one, items, place, style, (*path, f"[{n}]")) for n, one in enumerate(value))
    return value


def convert(value: Any, kind: Any, what: str) -> Any:
    """One value, as what it should be."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:
        raise UserError(f"{what} is {show(value)}: expected {expected(kind)}.") from None


def unknown(key: str, known: Iterable[str], style: Style, path: Path) -> str:
    """The sentence about a key that nobody knows, with the one that was probably meant."""
    known = list(known)
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
    remedy = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(known)}."
    here = (*path, key)
    return f"unknown {style.key_word(here)} {style.name(here)}: {remedy}"


def struct_of(kind: Any) -> type[msgspec.Struct] | None:
    """The struct that stands for a table: the type itself, or what is optional in it."""
    for one in typing.get_args(kind) if _is_union(kind) else (kind,):
        if isinstance(one, type) and issubclass(one, msgspec.Struct):
            return one
    return None


def _item_struct(kind: Any) -> type[msgspec.Struct] | None:
    """The struct of each item, where the type is a list of structs."""
    if typing.get_origin(kind) is tuple and typing.get_args(kind)[1:] == (...,):
        return struct_of(typing.get_args(kind)[0])
    return None


def _named_struct(kind: Any) -> type[msgspec.Struct] | None:
    """The struct of each value, where the type is a table of structs by their names."""
    return struct_of(typing.get_args(kind)[1]) if typing.get_origin(kind) is dict else None


def _key(key: Any, kind: Any, what: str) -> str:
    return str(convert(key, typing.get_args(kind)[0], f"{what}: the name"))


def _is_union(kind: Any) -> bool:
    return typing.get_origin(kind) in (typing.Union, types.UnionType)


def _may_be_none(kind: Any) -> bool:
    return _is_union(kind) and type(None) in typing.get_args(kind)


def parts(dotted: str) -> Path:
    """What ``where`` of an error says, as a path: ``rules[0].on`` is rules, [0], on."""
    return tuple(part for part in re.split(r"\.|(?=\[)", dotted) if part)


def _at(place: Place, path: Path) -> str:
    return place if isinstance(place, str) else place(path)


def _last(path: Path) -> str:
    """The key that a table was expected under; in a list, with its number."""
    return _dotted(path[-2:]) if path[-1].startswith("[") else path[-1]


def expected(kind: Any) -> str:
    """What a value may be, in words: 'an integer from 1 to 3'."""
    return _describe(msgspec.inspect.type_info(kind))


def _describe(info: msgspec.inspect.Type) -> str:
    match info:
        case msgspec.inspect.BoolType():
            words = "true or false"
        case msgspec.inspect.IntType():
            words = f"an integer{_bounds(info)}"
        case msgspec.inspect.FloatType():
            words = f"a number{_bounds(info)}"
        case msgspec.inspect.StrType(pattern=pattern):
            words = f"text that matches {pattern}" if pattern else "text"
        case msgspec.inspect.LiteralType(values=values):
            words = "one of " + ", ".join(repr(value) for value in values)
        case msgspec.inspect.VarTupleType(item_type=item) | msgspec.inspect.ListType(item_type=item):
            words = f"a list, each item {_describe(item)}"
        case msgspec.inspect.TupleType(item_types=items):
            words = f"[{', '.join(_describe(item) for item in items)}]"
        case msgspec.inspect.UnionType(types=types):
            words = " or ".join(_describe(each) for each in types)
        case msgspec.inspect.DictType(value_type=msgspec.inspect.AnyType()) | msgspec.inspect.StructType():
            words = "keys with values"
        case msgspec.inspect.DictType(value_type=value):
            words = f"keys with values, each {_describe(value)}"
        case _:
            words = type(info).__name__.removesuffix("Type").lower()
    return words


def _bounds(info: msgspec.inspect.IntType | msgspec.inspect.FloatType) -> str:
    low, high = info.ge, info.le
    if low is not None and high is not None:
        return f" from {low:,} to {high:,}"
    lower = f"of at least {low:,}" if low is not None else f"above {info.gt:,}" if info.gt is not None else ""
    upper = f"of at most {high:,}" if high is not None else f"below {info.lt:,}" if info.lt is not None else ""
    return "".join(f" {part}" for part in (lower, lower and upper and "and", upper) if part)


def show(value: Any) -> str:
    """A value as it stands, cut where it is long."""
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 1]}…"
