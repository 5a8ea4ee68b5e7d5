"""Every setting there is, in one typed tree: defaults, then a TOML file, then the environment.

A section of the file is a part of the system, a key is one of its settings::

    [broker]
    nodes = 3

The environment overrides it as ``TIDEGATE_BROKER__NODES=3``. A key that nobody knows, a wrong type or a
value out of range is refused with one sentence that names the place, what was found there and what was
expected.
"""

import difflib
import os
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from tidegate.brokers.settings import BrokerSettings
from tidegate.controller.settings import ControllerSettings
from tidegate.gateway.settings import GatewaySettings
from tidegate.model.errors import UserError
from tidegate.pipeline.settings import NodeSettings
from tidegate.web.settings import WebSettings

ENVIRONMENT_PREFIX = "TIDEGATE_"
ENVIRONMENT_SEPARATOR = "__"
_SHOWN_CHARACTERS = 60

Section = TypeVar("Section", bound=msgspec.Struct)


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The root of the tree: one field per section."""

    broker: BrokerSettings = msgspec.field(default_factory=BrokerSettings)
    gateway: GatewaySettings = msgspec.field(default_factory=GatewaySettings)
    controller: ControllerSettings = msgspec.field(default_factory=ControllerSettings)
    web: WebSettings = msgspec.field(default_factory=WebSettings)
    node: NodeSettings = msgspec.field(default_factory=NodeSettings)

    @property
    def durable(self) -> bool:
        """Whether what is promised has to survive a power failure, in the brokers and in the tables alike."""
        return self.broker.durability == "power-loss"


def load(path: Path | None = None, environment: Mapping[str, str] | None = None) -> Settings:
    """The settings of a file (none: the defaults) with the environment's overrides."""
    tree: dict[str, Any] = {}
    if path is not None:
        tree = _checked(_parse(path), Settings, f"{path}:", ())
    places = [] if path is None else [str(path)]
    for name, text in sorted((os.environ if environment is None else environment).items()):
        if name.startswith(ENVIRONMENT_PREFIX) and ENVIRONMENT_SEPARATOR in name:
            _override(tree, name, text)
            places.append(name)
    settings: Settings = _build(tree, Settings, ", ".join(places), ())
    return settings


def with_options(section: Section, given: Mapping[str, Any]) -> Section:
    """The section with the options of a command line put over it, checked like the file; None means not given."""
    kinds = {field.name: field.type for field in msgspec.structs.fields(section)}
    checked = {
        name: _convert(value, kinds[name], f"Option --{name.replace('_', '-')}")
        for name, value in given.items()
        if value is not None
    }
    return msgspec.structs.replace(section, **checked)


def _parse(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path} does not exist: name a TOML file with --config, or leave it out.") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}): name a readable TOML file.") from None
    except UnicodeDecodeError:
        raise UserError(f"{path} is not UTF-8 text: a settings file is TOML.") from None
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path} is not TOML ({_lower_first(str(error))}): correct that line.") from None


def _checked(
    table: Mapping[str, Any], struct: type[msgspec.Struct], place: str, section: tuple[str, ...]
) -> dict[str, Any]:
    """The same table with every value converted, or the one sentence that says which key is wrong."""
    fields = {field.encode_name: field for field in msgspec.structs.fields(struct)}
    checked: dict[str, Any] = {}
    for key, value in table.items():
        if key not in fields:
            raise UserError(f"{place} {_unknown(key, fields, section)}")
        kind, here = fields[key].type, (*section, key)
        if _is_struct(kind):
            if not isinstance(value, dict):
                raise UserError(f"{place} {key} is {_show(value)}: expected a section [{'.'.join(here)}].")
            checked[key] = _checked(value, kind, place, here)
        else:
            checked[key] = _convert(value, kind, f"{place} {_name(section, key)}")
    return checked


def _override(tree: dict[str, Any], name: str, text: str) -> None:
    """Put one variable of the environment into the tree."""
    path = name.removeprefix(ENVIRONMENT_PREFIX).lower().split(ENVIRONMENT_SEPARATOR)
    struct: type[msgspec.Struct] = Settings
    for depth, key in enumerate(path):
        fields = {field.encode_name: field for field in msgspec.structs.fields(struct)}
        section = tuple(path[:depth])
        if key not in fields:
            raise UserError(f"Environment variable {name}: {_unknown(key, fields, section)}")
        kind, is_last = fields[key].type, depth == len(path) - 1
        if _is_struct(kind) == is_last:
            expected = "a section, not a setting" if is_last else "a setting, not a section"
            raise UserError(f"Environment variable {name}: {_name(section, key)} is {expected}.")
        if is_last:
            tree[key] = _convert_text(text, kind, f"Environment variable {name}:")
            return
        tree, struct = tree.setdefault(key, {}), kind


def _convert_text(text: str, kind: Any, place: str) -> Any:
    """A text of the environment is taken as it stands where that fits, and else as a TOML value (lists)."""
    try:
        return msgspec.convert(text, kind, strict=False)
    except msgspec.ValidationError:
        try:
            value = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            value = text
    return _convert(value, kind, f"{place} the value")


def _convert(value: Any, kind: Any, place: str) -> Any:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:
        raise UserError(f"{place} is {_show(value)}: expected {_expected(kind)}.") from None


def _build(tree: Mapping[str, Any], struct: type[msgspec.Struct], place: str, section: tuple[str, ...]) -> Any:
    """The values themselves, from the leaves up; a contradiction is named with its section."""
    values: dict[str, Any] = {}
    for field in msgspec.structs.fields(struct):
        if field.encode_name in tree:
            value = tree[field.encode_name]
            if _is_struct(field.type):
                value = _build(value, field.type, place, (*section, field.encode_name))
            values[field.name] = value
    try:
        return struct(**values)
    except UserError as error:
        raise UserError(f"{place}: {error}") from None
    except (TypeError, ValueError) as error:
        raise UserError(f"{place}: [{'.'.join(section)}] {str(error).rstrip('.')}.") from None


def _unknown(key: str, known: Iterable[str], section: tuple[str, ...]) -> str:
    known = list(known)
    what = "setting" if section else "section"
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
    remedy = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(known)}."
    return f"unknown {what} {_name(section, key)}: {remedy}"


def _name(section: tuple[str, ...], key: str) -> str:
    return f"[{'.'.join(section)}] {key}" if section else f"[{key}]"


def _expected(kind: Any) -> str:
    """What a setting may be, in words: 'an integer from 1 to 3'."""
    return _describe(msgspec.inspect.type_info(kind))


def _describe(info: msgspec.inspect.Type) -> str:
    match info:
        case msgspec.inspect.BoolType():
            words = "true or false"
        case msgspec.inspect.IntType(ge=low, le=high):
            words = f"an integer{_bounds(low, high)}"
        case msgspec.inspect.FloatType(ge=low, le=high):
            words = f"a number{_bounds(low, high)}"
        case msgspec.inspect.StrType(pattern=pattern):
            words = f"text that matches {pattern}" if pattern else "text"
        case msgspec.inspect.LiteralType(values=values):
            words = "one of " + ", ".join(repr(value) for value in values)
        case msgspec.inspect.VarTupleType(item_type=item) | msgspec.inspect.ListType(item_type=item):
            words = f"a list, each item {_describe(item)}"
        case msgspec.inspect.UnionType(types=types):
            words = " or ".join(_describe(each) for each in types)
        case _:
            words = type(info).__name__.removesuffix("Type").lower()
    return words


def _bounds(low: float | None, high: float | None) -> str:
    if low is not None and high is not None:
        return f" from {low:,} to {high:,}"
    return f" of at least {low:,}" if low is not None else f" of at most {high:,}" if high is not None else ""


def _show(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[: _SHOWN_CHARACTERS - 1]}…"


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)
